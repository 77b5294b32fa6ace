/** Two drawn series and an operation become a query in PromQL. */
import { useSignal } from "@preact/signals";
import type { PromqlQuery } from "../../api/types";
import { FormDialog } from "../../parts/dialog";
import { combinedQuery, OPERATIONS, type Operand, type Operation } from "./combine";

interface Props {
  operands: readonly Operand[];
  onClose: () => void;
  onAdd: (query: PromqlQuery) => void;
}

export function CombineDialog({ operands, onClose, onAdd }: Props) {
  const first = useSignal(operands[0]?.key ?? "");
  const second = useSignal(operands[1]?.key ?? "");
  const operation = useSignal<Operation>(OPERATIONS[0]);
  const of = (key: string) => operands.find((operand) => operand.key === key);
  const [a, b] = [of(first.value), of(second.value)];
  const query = a && b && combinedQuery(a, operation.value, b);
  const choice = (label: string, value: string, onKey: (key: string) => void) => (
    <label class="labelled">
      {label}
      <select value={value} onChange={(event) => onKey(event.currentTarget.value)}>
        {operands.map(({ key, label: name }) => (
          <option key={key} value={key}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <FormDialog
      title="Combine two series"
      action="Add query"
      isReady={query !== undefined}
      onSubmit={() => query && onAdd(query)}
      onClose={onClose}
    >
      {choice("First series", first.value, (key) => (first.value = key))}
      <div class="choices" role="group" aria-label="Operation">
        {OPERATIONS.map((other) => (
          <button
            key={other.operator}
            type="button"
            aria-pressed={other === operation.value}
            onClick={() => (operation.value = other)}
          >
            {other.label} <span aria-hidden="true">{other.sign}</span>
          </button>
        ))}
      </div>
      {choice("Second series", second.value, (key) => (second.value = key))}
      {query && (
        <div class="labelled">
          PromQL
          <code class="combined mono">{query.expression}</code>
        </div>
      )}
    </FormDialog>
  );
}
