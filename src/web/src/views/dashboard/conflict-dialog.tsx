/**
 * The dialog of a conflict: another reader saved the dashboard during the edit. The reader chooses
 * a version.
 */
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import type { Dashboard } from "../../api/types";
import { useAttempt } from "../../parts/attempt";
import { Dialog, ErrorLine } from "../../parts/dialog";
import { Loading } from "../../parts/states";

interface Props {
  name: string;
  /** The stored version; `null` if it was deleted. */
  conflictingVersion: number | null;
  onClose: () => void;
  /** Rejects when saving fails again. */
  onOverwrite: (version: number | null) => Promise<void>;
  onSaveAs: () => void;
  onUseStored: () => void;
}

export function ConflictDialog(props: Props) {
  const { name, conflictingVersion, onClose, onOverwrite, onSaveAs, onUseStored } = props;
  const { busy, error, run } = useAttempt();
  const storedVersion = useResource(`${name} ${conflictingVersion}`, (signal) =>
    conflictingVersion === null ? Promise.resolve(null) : api.dashboard(name, signal),
  ).value;
  const version = storedVersion.data?.version ?? conflictingVersion;
  const overwrite = () => void run(() => onOverwrite(version));
  return (
    <Dialog
      title={conflictingVersion === null ? "Dashboard was deleted" : "Dashboard was changed"}
      onClose={onClose}
    >
      {conflictingVersion === null ? (
        <p>The dashboard was deleted while you edited it. Your changes are still here.</p>
      ) : storedVersion.data ? (
        <>
          <p>
            Version {version} was saved {changedText(storedVersion.data.changed)}, while you edited
            an older version. Your changes are still here.
          </p>
          <p class="muted">Theirs: {dashboardSummary(storedVersion.data.dashboard)}</p>
        </>
      ) : storedVersion.error ? (
        <ErrorLine message={storedVersion.error.message} />
      ) : (
        <Loading what="their version" />
      )}
      <div class="conflict-ways">
        <button type="button" class="button" onClick={onSaveAs}>
          Save mine as…
        </button>
        <button
          type="button"
          class="button"
          disabled={busy.value || (conflictingVersion !== null && !storedVersion.data)}
          onClick={overwrite}
        >
          {conflictingVersion === null ? "Save mine" : `Overwrite version ${version}`}
        </button>
        {conflictingVersion === null ? null : (
          <button type="button" class="button" onClick={onUseStored}>
            Discard mine
          </button>
        )}
      </div>
      <ErrorLine message={error.value} />
      <footer class="dialog-foot">
        <button type="button" class="button primary" onClick={onClose}>
          Keep editing
        </button>
      </footer>
    </Dialog>
  );
}

function changedText(changed: number | null): string {
  if (changed === null) return "";
  return `on ${new Date(changed).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" })}`;
}

function dashboardSummary({ title, panels }: Dashboard): string {
  const count = panels.length === 1 ? "1 panel" : `${panels.length} panels`;
  return `“${title}” with ${count}`;
}
