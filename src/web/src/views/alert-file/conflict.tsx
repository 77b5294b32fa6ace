/** The notice that somebody else changed or deleted the text during an edit. */
import { momentText } from "../../app/moment";
import { Callout } from "../../parts/callout";
import type { StoredText } from "./kinds";

interface Props {
  /** The text that is stored now; `undefined` if it was deleted. */
  theirs: StoredText | undefined;
  /** The version on which the edit is based. */
  version: number | null;
  isBusy: boolean;
  onLoad: () => void;
  onOverwrite: () => void;
}

export function Conflict({ theirs, version, isBusy, onLoad, onOverwrite }: Props) {
  if (!theirs) {
    return (
      <Callout tone="warn" label="Conflict" title="Somebody else deleted this text">
        <p>Your text is still in the box below.</p>
        <div class="text-ways">
          <button type="button" class="button" disabled={isBusy} onClick={onOverwrite}>
            Save mine again
          </button>
        </div>
      </Callout>
    );
  }
  return (
    <Callout tone="warn" label="Conflict" title="Somebody else changed this text">
      <p>
        Version {theirs.version} was saved at {momentText(theirs.changed)}, while you edited{" "}
        {version === null ? "a new text" : `version ${version}`}. Your text is still in the box
        below.
      </p>
      <details>
        <summary>Their text</summary>
        <pre class="file-text" aria-label="Their text" tabIndex={0}>
          {theirs.text}
        </pre>
      </details>
      <div class="text-ways">
        <button type="button" class="button" disabled={isBusy} onClick={onLoad}>
          Load theirs
        </button>
        <button type="button" class="button" disabled={isBusy} onClick={onOverwrite}>
          Overwrite version {theirs.version}
        </button>
      </div>
    </Callout>
  );
}
