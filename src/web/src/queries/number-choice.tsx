/** A choice of the number drawn for each slot. */
import type { Display } from "../api/types";

interface Choice {
  value: Display;
  label: string;
}

const NUMBERS: readonly Choice[] = [
  { value: "avg", label: "Average" },
  { value: "avg_per_sec", label: "Average per second" },
  { value: "sum_per_sec", label: "Sum per second" },
  { value: "total", label: "Total" },
  { value: "min", label: "Min" },
  { value: "max", label: "Max" },
  { value: "first", label: "First" },
  { value: "last", label: "Last" },
  { value: "count", label: "Count" },
];

const OF_HISTOGRAMS: readonly Choice[] = [
  { value: "distribution", label: "Heat map" },
  ...(["p50", "p90", "p95", "p99", "p99.9"] as const).map((value) => ({ value, label: value })),
];

const PERCENTILE = /^p\d{1,3}(\.\d{1,2})?$/;

export function displayOf(text: string): Display | undefined {
  if (PERCENTILE.test(text)) return text as Display;
  return [...NUMBERS, ...OF_HISTOGRAMS].find(({ value }) => value === text)?.value;
}

interface Props {
  value: Display | undefined;
  onChange: (value: Display | undefined) => void;
}

export function NumberChoice({ value, onChange }: Props) {
  const isOther = value !== undefined && PERCENTILE.test(value);
  const ofHistograms =
    isOther && !OF_HISTOGRAMS.some((choice) => choice.value === value)
      ? [...OF_HISTOGRAMS, { value, label: value }]
      : OF_HISTOGRAMS;
  return (
    <select
      aria-label="Value"
      title="Value of each slot that is drawn"
      value={value ?? ""}
      onChange={(event) => onChange(displayOf(event.currentTarget.value))}
    >
      <option value="">Default value</option>
      {optionsOf(NUMBERS)}
      <optgroup label="Histograms">{optionsOf(ofHistograms)}</optgroup>
    </select>
  );
}

function optionsOf(choices: readonly Choice[]) {
  return choices.map(({ value, label }) => (
    <option key={value} value={value}>
      {label}
    </option>
  ));
}
