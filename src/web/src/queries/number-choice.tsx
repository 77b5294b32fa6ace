/** Which number of each slot is drawn. */
import type { Display } from "../api/types";

const NUMBERS: readonly { value: Display; label: string }[] = [
  { value: "avg", label: "Average" },
  { value: "avg_per_sec", label: "Average per second" },
  { value: "sum_per_sec", label: "Sum per second" },
  { value: "total", label: "Total" },
  { value: "min", label: "Least" },
  { value: "max", label: "Greatest" },
  { value: "first", label: "First" },
  { value: "last", label: "Last" },
  { value: "count", label: "Count of samples" },
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
      aria-label="Number of each slot"
      title="Which number of each slot is drawn"
      value={value ?? ""}
      onChange={(event) => onChange(displayOf(event.currentTarget.value))}
    >
      <option value="">Default number</option>
      {NUMBERS.map((number) => (
        <option key={number.value} value={number.value}>
          {number.label}
        </option>
      ))}
    </select>
  );
}
