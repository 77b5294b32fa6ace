/** Imports an exported dashboard: from a file, or from its text. */
import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import { api } from "../../api/client";
import { navigate } from "../../app/address";
import { useAttempt } from "../../parts/attempt";
import { FormDialog } from "../../parts/dialog";
import { Icon } from "../../parts/icon";
import { freeName, isSlug, readDashboard, slugOf } from "../dashboard/draft";
import { NameField, NO_SLUG, saveError } from "../dashboard/name-dialog";

/** The size limit of an imported file. */
const FILE_BYTES_MAX = 4 * 1024 * 1024;

export function ImportDialog({ taken, onClose }: { taken: string[]; onClose: () => void }) {
  const text = useSignal("");
  const typed = useSignal<string | undefined>(undefined);
  const { busy, error, run } = useAttempt();
  const file = useId();
  const read = text.value.trim() === "" ? undefined : readDashboard(text.value);
  const title = typeof read === "object" && typeof read.title === "string" ? read.title : "";
  const name = typed.value ?? freeName(slugOf(title), taken);

  const choose = async (chosen: File | undefined) => {
    if (!chosen) return;
    error.value = chosen.size > FILE_BYTES_MAX ? "The file is too large." : undefined;
    if (error.value === undefined) text.value = await chosen.text();
  };
  const submit = () => {
    if (read === undefined) error.value = "Choose a file, or paste its text.";
    else if (typeof read === "string") error.value = read;
    else if (!isSlug(name)) error.value = NO_SLUG;
    else {
      const save = async () => {
        await api.saveDashboard(name, null, read);
        navigate(`/dashboards/${name}`);
      };
      void run(save, (cause) => saveError(cause, name));
    }
  };

  return (
    <FormDialog
      title="Import a dashboard"
      action="Import"
      isReady={!busy.value}
      error={error.value}
      onSubmit={submit}
      onClose={onClose}
    >
      <div
        class="drop"
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          event.preventDefault();
          void choose(event.dataTransfer?.files[0]);
        }}
      >
        <label class="button" htmlFor={file}>
          <Icon name="upload" /> Choose a file
        </label>
        <input
          id={file}
          class="hidden-text"
          type="file"
          accept=".json,application/json"
          onChange={(event) => void choose(event.currentTarget.files?.[0])}
        />
        <span class="muted">or drop it here</span>
      </div>
      <label class="labelled">
        JSON
        <textarea
          class="mono"
          rows={8}
          spellcheck={false}
          placeholder='{"schema": 1, "title": "…", "variables": [], "panels": []}'
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
            error.value = undefined;
          }}
        />
      </label>
      <NameField name={name} onName={(text) => (typed.value = text)} />
    </FormDialog>
  );
}
