/** The editor for the variables of a dashboard. */
import { useSignal } from "@preact/signals";
import type { Variable } from "../../api/types";
import { FormDialog, TextField } from "../../parts/dialog";
import { Icon } from "../../parts/icon";
import { variablesFault } from "./draft";

interface Props {
  variables: readonly Variable[];
  onClose: () => void;
  onDone: (variables: Variable[]) => void;
}

export function VariablesDialog({ variables, onClose, onDone }: Props) {
  const draft = useSignal<Variable[]>(structuredClone([...variables]));
  const fault = useSignal<string | undefined>(undefined);
  const change = (at: number, part: Partial<Variable>) => {
    draft.value = draft.value.map((variable, index) =>
      index === at ? { ...variable, ...part } : variable,
    );
  };
  const done = () => {
    const trimmed = draft.value.map(({ name, tag, metric, multi }) => ({
      name: name.trim(),
      tag: tag.trim(),
      ...(metric?.trim() ? { metric: metric.trim() } : {}),
      multi,
    }));
    fault.value = variablesFault(trimmed);
    if (fault.value === undefined) onDone(trimmed);
  };
  const add = () => {
    const name = draft.value.some((variable) => variable.name === "host") ? "" : "host";
    draft.value = [...draft.value, { name, tag: name, multi: true }];
  };
  return (
    <FormDialog
      title="Variables"
      wide
      action="Apply"
      error={fault.value}
      onSubmit={done}
      onClose={onClose}
    >
      <p class="muted">
        Variables are chosen above the panels. <code>$name</code> stands for what was chosen, in
        queries and titles: <code>host=$host</code>, or <code>{'up{host="$host"}'}</code> in PromQL.
      </p>
      <ul class="variable-rows">
        {draft.value.map((variable, at) => (
          <li key={at}>
            <Row
              variable={variable}
              onChange={(part) => change(at, part)}
              onRemove={() => (draft.value = draft.value.toSpliced(at, 1))}
            />
          </li>
        ))}
      </ul>
      <div>
        <button type="button" class="button" disabled={draft.value.length >= 20} onClick={add}>
          <Icon name="plus" /> Add variable
        </button>
      </div>
    </FormDialog>
  );
}

interface RowProps {
  variable: Variable;
  onChange: (part: Partial<Variable>) => void;
  onRemove: () => void;
}

function Row({ variable, onChange, onRemove }: RowProps) {
  const field = (label: string, key: "name" | "tag" | "metric", hint: string) => (
    <TextField
      label={label}
      placeholder={hint}
      value={variable[key] ?? ""}
      onText={(text) => onChange({ [key]: text })}
    />
  );
  return (
    <div class="variable-row">
      {field("Name", "name", "host")}
      {field("Values of tag", "tag", "host")}
      {field("Of this metric only", "metric", "any metric")}
      <label class="checked">
        <input
          type="checkbox"
          checked={variable.multi}
          onChange={(event) => onChange({ multi: event.currentTarget.checked })}
        />
        <span>Multiple values</span>
      </label>
      <button
        type="button"
        class="button quiet icon-only"
        aria-label={`Remove variable ${variable.name}`}
        title="Remove variable"
        onClick={onRemove}
      >
        <Icon name="trash" />
      </button>
    </div>
  );
}
