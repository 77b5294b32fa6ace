/** A key in the list: a row of the table, or a card on a narrow screen. */
import { now } from "../../api/client";
import { keyId } from "../../api/key";
import type { KeyEntry } from "../../api/types";
import { momentText } from "../../app/moment";
import { Ago } from "../../parts/ago";
import { Icon } from "../../parts/icon";
import { keyState } from "./key-list";
import { Expires, Made } from "./times";

interface Props {
  entry: KeyEntry;
  onDo: (what: "rotate" | "revoke") => void;
}

export function KeyRow({ entry, onDo }: Props) {
  return (
    <tr>
      <th scope="row">
        <KeyName entry={entry} />
      </th>
      <td>
        <KeyScopes entry={entry} />
      </td>
      <td>
        <Made entry={entry} />
      </td>
      <td>
        <Expires entry={entry} />
      </td>
      <td class="num-left">
        <Used entry={entry} />
      </td>
      <td>
        <Actions entry={entry} onDo={onDo} />
      </td>
    </tr>
  );
}

export function KeyCard({ entry, onDo }: Props) {
  return (
    <li class="access-card">
      <KeyName entry={entry} />
      <KeyScopes entry={entry} />
      <dl class="access-facts">
        <div>
          <dt>Made</dt>
          <dd>
            <Made entry={entry} />
          </dd>
        </div>
        <div>
          <dt>Expires</dt>
          <dd>
            <Expires entry={entry} />
          </dd>
        </div>
        <div>
          <dt>Last use</dt>
          <dd>
            <Used entry={entry} />
          </dd>
        </div>
      </dl>
      <Actions entry={entry} onDo={onDo} />
    </li>
  );
}

function KeyName({ entry }: { entry: KeyEntry }) {
  const { tone, label } = keyState(entry, now());
  return (
    <div class="access-name">
      <span>
        {entry.name}
        {entry.id === keyId() && <span class="badge">This tab</span>}
        {tone !== "good" && (
          <span class="badge">
            <span class={`dot ${tone}`} aria-hidden="true" />
            {label}
          </span>
        )}
      </span>
      <small class="mono muted">{entry.id}</small>
      {entry.overlap_until !== null && (
        <small class="muted">previous secret until {momentText(entry.overlap_until)}</small>
      )}
    </div>
  );
}

function KeyScopes({ entry: { scopes, project, senders, one_sender } }: { entry: KeyEntry }) {
  return (
    <>
      <ul class="labels" aria-label="Scopes">
        {scopes.map((scope) => (
          <li key={scope} class="badge">
            {scope}
          </li>
        ))}
      </ul>
      {project !== "default" && (
        <small class="muted">
          project <span class="mono">{project}</span>
        </small>
      )}
      {senders !== null && (
        <small class="muted">
          {one_sender ? "sender" : "senders"}{" "}
          <span class="mono">{one_sender ? senders : `${senders}…`}</span>
        </small>
      )}
    </>
  );
}

function Used({ entry: { used } }: { entry: KeyEntry }) {
  if (used === null) return <span class="muted">not since the start</span>;
  return (
    <span title={momentText(used)}>
      <Ago at={used} />
    </span>
  );
}

function Actions({ entry, onDo }: Props) {
  return (
    <div class="access-actions">
      <button
        type="button"
        class="button small"
        aria-label={`Rotate ${entry.name}`}
        onClick={() => onDo("rotate")}
      >
        <Icon name="refresh" /> Rotate
      </button>
      <button
        type="button"
        class="button small"
        aria-label={`Revoke ${entry.name}`}
        onClick={() => onDo("revoke")}
      >
        <Icon name="trash" /> Revoke
      </button>
    </div>
  );
}
