/** Imports an exported dashboard of Granary or Grafana: from a file, or from its text. */
import { useSignal } from "@preact/signals";
import { useEffect, useId, useMemo } from "preact/hooks";
import { api } from "../../api/client";
import { navigate } from "../../app/address";
import { freeName, isSlug, NO_SLUG, slugOf } from "../../model/slug";
import { countWithNoun } from "../../model/words";
import { useAttempt } from "../../parts/attempt";
import { FormDialog } from "../../parts/dialog";
import { Icon } from "../../parts/icon";
import { exportedDashboard, readExport } from "../dashboard/draft";
import { NameField, saveError } from "../dashboard/name-dialog";
import { importGrafana, type Imported } from "./grafana/import";
import { isGrafana } from "./grafana/parts";

/** The size limit of an imported file. */
const FILE_BYTES_MAX = 4 * 1024 * 1024;

/** The pause in typing after which expressions are checked. */
const CHECK_DELAY_MS = 500;

export function ImportDialog({ taken, onClose }: { taken: string[]; onClose: () => void }) {
  const text = useSignal("");
  const typed = useSignal<string | undefined>(undefined);
  const { busy, error, run } = useAttempt();
  const file = useId();
  const read = useMemo(
    () => (text.value.trim() === "" ? undefined : readImport(text.value)),
    [text.value],
  );
  const storedTitle = typeof read === "object" ? read.dashboard.title : "";
  const title = typeof storedTitle === "string" ? storedTitle : "";
  const name = typed.value ?? freeName(slugOf(title), taken, "dashboard");

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
        await api.saveDashboard(name, null, read.dashboard);
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
      {typeof read === "object" && read.notes && (
        <GrafanaNotes dashboard={read.dashboard} notes={read.notes} />
      )}
      <NameField name={name} onName={(text) => (typed.value = text)} />
    </FormDialog>
  );
}

/** A read dashboard; `notes` name what of a dashboard of Grafana is not taken over. */
interface ReadImport {
  dashboard: Imported["dashboard"];
  notes?: Imported["notes"];
}

function readImport(text: string): ReadImport | string {
  const parsed = readExport(text);
  if (typeof parsed === "string") return parsed;
  return isGrafana(parsed) ? importGrafana(parsed) : { dashboard: exportedDashboard(parsed) };
}

function GrafanaNotes({ dashboard, notes: differences }: Imported) {
  const refused = useSignal<string[]>([]);
  useEffect(() => {
    const abort = new AbortController();
    refused.value = [];
    const check = async () => {
      // The check needs the code of charts, which this view does not load otherwise.
      const { refusedQueries } = await import("./grafana/refused");
      const found = await refusedQueries(dashboard, abort.signal);
      if (!abort.signal.aborted) refused.value = found;
    };
    // Without the check, the charts report rejected expressions.
    const timer = setTimeout(() => void check().catch(() => undefined), CHECK_DELAY_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [dashboard]);
  const notes = [...refused.value, ...differences];
  return (
    <div class="import-notes" role="status">
      <p>
        A dashboard of Grafana: {countWithNoun(dashboard.panels.length, "panel")} to import.
        {notes.length > 0 && " Differences:"}
      </p>
      {notes.length > 0 && (
        <ul tabIndex={0} aria-label="Differences from Grafana">
          {notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
    </div>
  );
}
