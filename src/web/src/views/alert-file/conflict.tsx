/** The notice that somebody else changed or deleted the text during an edit. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { momentText } from "../../app/moment";
import { Callout } from "../../parts/callout";
import type { Edit } from "./edit";
import type { StoredText } from "./kinds";

interface Props {
  edit: Edit;
  /** Saves over a version. */
  onSave: (over: number | null) => void;
}

export function Conflict({ edit, onSave }: Props) {
  if (edit.mine.value !== undefined) return <TheirsLoaded onRestore={edit.restore} />;
  if (!edit.conflict.value) return null;
  const { theirs } = edit.conflict.value;
  return (
    <Announced key={theirs?.version ?? "deleted"}>
      {theirs ? (
        <Changed theirs={theirs} edit={edit} onSave={onSave} />
      ) : (
        <Deleted edit={edit} onSave={onSave} />
      )}
    </Announced>
  );
}

/** Reads the notice out, and scrolls to it: a button that was pressed may be disabled now. */
function Announced({ children }: { children: ComponentChildren }) {
  const notice = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => notice.current?.focus(), []);
  return (
    <div class="text-notice" role="alert" tabIndex={-1} ref={notice}>
      {children}
    </div>
  );
}

function Deleted({ edit, onSave }: Props) {
  return (
    <Callout tone="warn" label="Conflict" title="Somebody else deleted this text">
      <p>Your text is still in the box below.</p>
      <div class="text-ways">
        <button
          type="button"
          class="button"
          disabled={edit.busy.value}
          onClick={() => onSave(null)}
        >
          Save mine again
        </button>
      </div>
    </Callout>
  );
}

function Changed({ theirs, edit, onSave }: Props & { theirs: StoredText }) {
  const version = edit.base.value?.version;
  const isBusy = edit.busy.value;
  return (
    <Callout tone="warn" label="Conflict" title="Somebody else changed this text">
      <p>
        Version {theirs.version} was saved at {momentText(theirs.changed)}, while you edited{" "}
        {version === undefined ? "a new text" : `version ${version}`}. Your text is still in the box
        below.
      </p>
      <details open>
        <summary>Their text</summary>
        <pre class="file-text" aria-label="Their text" tabIndex={0}>
          {theirs.text}
        </pre>
      </details>
      <div class="text-ways">
        <button type="button" class="button" disabled={isBusy} onClick={() => edit.load(theirs)}>
          Load theirs
        </button>
        <button
          type="button"
          class="button"
          disabled={isBusy}
          onClick={() => onSave(theirs.version)}
        >
          Overwrite version {theirs.version}
        </button>
      </div>
    </Callout>
  );
}

function TheirsLoaded({ onRestore }: { onRestore: () => void }) {
  return (
    <Callout tone="good" label="Loaded" title="The box contains their text">
      <p>The page keeps your text until you edit theirs or leave this view.</p>
      <div class="text-ways">
        <button type="button" class="button" onClick={onRestore}>
          Back to mine
        </button>
      </div>
    </Callout>
  );
}
