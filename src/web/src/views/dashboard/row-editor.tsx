/** The editor of a row: its title, its repetition, and whether it is folded at first. */
import { useSignal } from "@preact/signals";
import type { RowPanel, Variable } from "../../api/types";
import { FormDialog, TextField } from "../../parts/dialog";
import { RepeatChoice } from "./panel-options";

interface Props {
  panel: RowPanel;
  isNew: boolean;
  variables: readonly Variable[];
  onClose: () => void;
  onDone: (panel: RowPanel) => void;
}

const TITLE_MAX = 200;

export function RowEditor({ panel, isNew, variables, onClose, onDone }: Props) {
  const draft = useSignal(panel);
  const change = (part: Partial<RowPanel>) => (draft.value = { ...draft.value, ...part });
  return (
    <FormDialog
      title={isNew ? "New row" : "Edit row"}
      action={isNew ? "Add" : "Apply"}
      onClose={onClose}
      onSubmit={() => onDone(draft.value)}
    >
      <p class="muted">A row folds the panels below it, up to the next row.</p>
      <TextField
        label="Title"
        isFirst
        maxLength={TITLE_MAX}
        value={draft.value.title}
        onText={(title) => change({ title })}
      />
      <RepeatChoice
        repeat={draft.value.repeat}
        variables={variables}
        onChange={(repeat) => {
          const { repeat: _, ...rest } = draft.value;
          draft.value = repeat ? { ...rest, repeat } : rest;
        }}
      />
      <label class="checked">
        <input
          type="checkbox"
          checked={draft.value.folded ?? false}
          onChange={(event) => change({ folded: event.currentTarget.checked })}
        />
        <span>Folded at first</span>
      </label>
    </FormDialog>
  );
}
