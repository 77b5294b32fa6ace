/** A choice of the number drawn for each slot. */
import type { Display } from "../api/types";

const NUMBERS: readonly { value: Display; label: string }[] = [
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

export function displayOf(text: string): Display | undefined {
  return NUMBERS.find(({ value }) => value === text)?.value;
}

interface Props {
  value: Display | undefined;
  onChange: (value: Display | undefined) => void;
}

export function NumberChoice({ value, onChange }: Props) {
  return (
    <select
      aria-label="Value"
      title="Value of each slot that is drawn"
      value={value ?? ""}
      onChange={(event) => onChange(displayOf(event.currentTarget.value))}
    >
      <option value="">Default</option>
      {NUMBERS.map((number) => (
        <option key={number.value} value={number.value}>
          {number.label}
        </option>
      ))}
    </select>
  );
}
