/** The list of dashboards, with actions to open, create, import and delete a dashboard. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError, api } from "../api/client";
import { useResource } from "../api/resource";
import type { DashboardEntry, DashboardFileFault } from "../api/types";
import { navigate } from "../app/address";
import { causeText, useAttempt } from "../parts/attempt";
import { Callout } from "../parts/callout";
import { FormDialog } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { Empty, Failed, Loading } from "../parts/states";
import "../styles/dashboards.css";
import { emptyDashboard } from "./dashboard/draft";
import { ImportDialog } from "./dashboards/import-dialog";
import { NameDialog } from "./dashboard/name-dialog";

type Open = { dialog: "new" | "import" } | { dialog: "delete"; entry: DashboardEntry };

export function Dashboards() {
  const found = useResource("dashboards", (signal) => api.dashboards(signal), { everyMs: 30_000 });
  const open = useSignal<Open | undefined>(undefined);
  const words = useSignal("");
  useEffect(() => {
    document.title = "Dashboards · Granary";
  }, []);
  const { data, error, reload } = found.value;
  const close = () => (open.value = undefined);
  const all = data?.dashboards ?? [];
  const shown = all.filter(({ name, title, folder = "" }) =>
    `${name} ${title} ${folder}`.toLowerCase().includes(words.value.trim().toLowerCase()),
  );
  const taken = all.map(({ name }) => name);
  return (
    <>
      <header class="head">
        <h1>Dashboards</h1>
        <input
          type="search"
          class="dashboards-search"
          aria-label="Search dashboards"
          placeholder="Search dashboards"
          value={words.value}
          onInput={(event) => (words.value = event.currentTarget.value)}
        />
        <button type="button" class="button" onClick={() => (open.value = { dialog: "import" })}>
          <Icon name="upload" /> Import
        </button>
        <button
          type="button"
          class="button primary"
          onClick={() => (open.value = { dialog: "new" })}
        >
          <Icon name="plus" /> New dashboard
        </button>
      </header>
      {data?.faults && <FileFaults faults={data.faults} />}
      {!data && error ? (
        <Failed message={error.message} onRetry={reload} />
      ) : !data ? (
        <Loading what="dashboards" />
      ) : shown.length === 0 ? (
        <Empty title={words.value ? `No dashboard matches “${words.value}”` : "No dashboards yet"}>
          <p>A dashboard groups charts and texts.</p>
        </Empty>
      ) : (
        <Folders entries={shown} onDelete={(entry) => (open.value = { dialog: "delete", entry })} />
      )}
      {open.value?.dialog === "new" ? <NewDialog taken={taken} onClose={close} /> : null}
      {open.value?.dialog === "import" ? <ImportDialog taken={taken} onClose={close} /> : null}
      {open.value?.dialog === "delete" ? (
        <DeleteDialog entry={open.value.entry} onClose={close} onDone={reload} />
      ) : null}
    </>
  );
}

/** The files of dashboards that are not in use, with the reasons. */
function FileFaults({ faults }: { faults: readonly DashboardFileFault[] }) {
  const title = faults.length === 1 ? "1 file has a fault" : `${faults.length} files have faults`;
  return (
    <Callout tone="warn" label="Faulty files" title={title}>
      <ul class="file-faults">
        {faults.map(({ file, message }) => (
          <li key={file}>
            <code>{file}</code>: {message}
          </li>
        ))}
      </ul>
    </Callout>
  );
}

interface ListProps {
  entries: DashboardEntry[];
  onDelete: (entry: DashboardEntry) => void;
}

/** The dashboards of each folder; those without a folder first. */
function Folders({ entries, onDelete }: ListProps) {
  const names = [...new Set(entries.map(({ folder = "" }) => folder))];
  const folders = names
    .sort((a, b) => a.localeCompare(b))
    .map((name) => [name, entries.filter(({ folder = "" }) => folder === name)] as const);
  return (
    <>
      {folders.map(([folder, entries]) => (
        <section key={folder} aria-label={folder || "Dashboards without a folder"}>
          {folder && <h2 class="section-title">{folder}</h2>}
          <List entries={entries} onDelete={onDelete} />
        </section>
      ))}
    </>
  );
}

function List(props: ListProps) {
  return (
    <ul class="dashboards">
      {props.entries.map((entry) => (
        <li key={entry.name} class="card dashboards-entry">
          <span class="dashboards-icon" aria-hidden="true">
            <Icon name="dashboards" />
          </span>
          <span class="dashboards-title">
            <a href={`/dashboards/${entry.name}`}>{entry.title || entry.name}</a>
            <small class="muted">{changedOf(entry)}</small>
          </span>
          {entry.builtin ? (
            <span class="badge">Built-in</span>
          ) : entry.file ? (
            <span class="badge">File</span>
          ) : (
            <button
              type="button"
              class="button quiet icon-only"
              aria-label={`Delete ${entry.title}`}
              title="Delete"
              onClick={() => props.onDelete(entry)}
            >
              <Icon name="trash" />
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}

function changedOf({ name, builtin, file, changed }: DashboardEntry): string {
  if (file) return `/${name} · from ${file}`;
  if (builtin || changed === null) return `/${name} · comes with Granary`;
  const at = new Date(changed).toLocaleString(undefined, {
    dateStyle: "medium",
    timeStyle: "short",
  });
  return `/${name} · changed ${at}`;
}

function NewDialog({ taken, onClose }: { taken: string[]; onClose: () => void }) {
  return (
    <NameDialog
      heading="New dashboard"
      action="Create"
      title=""
      taken={taken}
      onClose={onClose}
      onSave={async (name, title) => {
        await api.saveDashboard(name, null, emptyDashboard(title));
        navigate(`/dashboards/${name}?edit=1`);
      }}
    />
  );
}

function DeleteDialog(props: { entry: DashboardEntry; onClose: () => void; onDone: () => void }) {
  const { entry, onClose, onDone } = props;
  const { busy, error, run } = useAttempt();
  const remove = async () => {
    await api.deleteDashboard(entry.name, entry.version ?? 0);
    onDone();
    onClose();
  };
  const errorText = (cause: unknown) => {
    if (!(cause instanceof ApiError && cause.code === "conflict")) return causeText(cause);
    onDone();
    return "The dashboard was changed after this list was loaded. Review it before you delete it.";
  };
  return (
    <FormDialog
      title={`Delete “${entry.title}”?`}
      action="Delete"
      isReady={!busy.value}
      error={error.value}
      onSubmit={() => void run(remove, errorText)}
      onClose={onClose}
    >
      <p>The dashboard is deleted for everyone. The series that it shows stay.</p>
    </FormDialog>
  );
}
