/** The one-time codes with which agents get keys of their own, with actions to make and revoke. */
import { useSignal } from "@preact/signals";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { caller } from "../../api/session";
import type { CodeEntry, CodeWithText } from "../../api/types";
import { countWithNoun, lengthText } from "../../model/words";
import { Icon } from "../../parts/icon";
import { narrow } from "../../parts/narrow";
import { Empty, Failed, Loading } from "../../parts/states";
import { Table } from "../../parts/table";
import { AccessIsOff } from "./access-is-off";
import { EnrollDialog, NewCodeDialog, RevokeCodeDialog } from "./code-dialogs";
import { Expires, Made } from "./times";

const REFRESH_MS = 30_000;
/** The number of codes that are drawn at first, and added by each click. */
const PART = 100;
const COLUMNS = ["Code", "For", "Key", "Made", "Expires", "Actions"];

type Open =
  | { dialog: "new" }
  | { dialog: "revoke"; entry: CodeEntry }
  | { dialog: "enroll"; shown: CodeWithText };

export function Codes() {
  const codes = useResource("codes", (signal) => api.codes(signal), { everyMs: REFRESH_MS });
  const open = useSignal<Open | undefined>(undefined);
  const { data, error, reload } = codes.value;
  const close = () => (open.value = undefined);
  const show = (shown: CodeWithText) => {
    open.value = { dialog: "enroll", shown };
    reload();
  };
  return (
    <>
      {caller.value?.access === false && <AccessIsOff />}
      <section class="card section" aria-labelledby="codes-title">
        <div class="card-head">
          <h2 id="codes-title">Codes</h2>
          {data && <span class="muted num">{countWithNoun(data.codes.length, "code")}</span>}
          <button
            type="button"
            class="button primary"
            onClick={() => (open.value = { dialog: "new" })}
          >
            <Icon name="plus" /> New code
          </button>
        </div>
        {data ? (
          <CodeList
            codes={data.codes}
            onRevoke={(entry) => (open.value = { dialog: "revoke", entry })}
          />
        ) : error ? (
          <Failed message={`Cannot load the codes: ${error.message}`} onRetry={reload} />
        ) : (
          <Loading what="codes" />
        )}
      </section>
      {open.value?.dialog === "new" && <NewCodeDialog onClose={close} onMade={show} />}
      {open.value?.dialog === "revoke" && (
        <RevokeCodeDialog entry={open.value.entry} onClose={close} onRevoked={reload} />
      )}
      {open.value?.dialog === "enroll" && <EnrollDialog shown={open.value.shown} onClose={close} />}
    </>
  );
}

interface ListProps {
  codes: CodeEntry[];
  onRevoke: (entry: CodeEntry) => void;
}

function CodeList({ codes, onRevoke }: ListProps) {
  const limit = useSignal(PART);
  const listed = [...codes].sort((a, b) => b.created - a.created);
  const shown = listed.slice(0, limit.value);
  if (codes.length === 0) {
    return (
      <Empty title="No codes">
        <p>
          With a code, an agent gets a key of its own. The key renews itself, and nobody copies it.
        </p>
      </Empty>
    );
  }
  const parts = (entry: CodeEntry) => ({ entry, onRevoke: () => onRevoke(entry) });
  return (
    <>
      {narrow.value ? (
        <ul class="access-cards">
          {shown.map((entry) => (
            <CodeCard key={entry.id} {...parts(entry)} />
          ))}
        </ul>
      ) : (
        <Table label="Codes" class="access-table" columns={COLUMNS}>
          {shown.map((entry) => (
            <CodeRow key={entry.id} {...parts(entry)} />
          ))}
        </Table>
      )}
      {shown.length < listed.length && (
        <div class="card-foot">
          <button type="button" class="button small" onClick={() => (limit.value += PART)}>
            Show more of {countWithNoun(listed.length, "code")}
          </button>
        </div>
      )}
    </>
  );
}

interface Props {
  entry: CodeEntry;
  onRevoke: () => void;
}

function CodeRow({ entry, onRevoke }: Props) {
  return (
    <tr>
      <th scope="row" class="mono">
        {entry.id}
      </th>
      <td>
        <For entry={entry} />
      </td>
      <td>{keyText(entry)}</td>
      <td>
        <Made entry={entry} />
      </td>
      <td>
        <Expires entry={entry} />
      </td>
      <td>
        <Revoke entry={entry} onRevoke={onRevoke} />
      </td>
    </tr>
  );
}

function CodeCard({ entry, onRevoke }: Props) {
  return (
    <li class="access-card">
      <div class="access-name">
        <span class="mono">{entry.id}</span>
      </div>
      <For entry={entry} />
      <dl class="access-facts">
        <div>
          <dt>Key</dt>
          <dd>{keyText(entry)}</dd>
        </div>
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
      </dl>
      <Revoke entry={entry} onRevoke={onRevoke} />
    </li>
  );
}

function For({ entry: { purpose, project, senders } }: { entry: CodeEntry }) {
  if (purpose === "first_admin") return <>The first administrator</>;
  return (
    <div>
      {senders === null ? "Any agent" : "Agents "}
      {senders !== null && <span class="mono">{senders}…</span>}
      {project !== "default" && (
        <small class="muted">
          {" "}
          project <span class="mono">{project}</span>
        </small>
      )}
    </div>
  );
}

function keyText({ key_life_ms }: CodeEntry): string {
  return key_life_ms === null ? "–" : `${lengthText(key_life_ms, 1)}, renews itself`;
}

function Revoke({ entry, onRevoke }: Props) {
  return (
    <div class="access-actions">
      <button
        type="button"
        class="button small"
        aria-label={`Revoke ${entry.id}`}
        onClick={onRevoke}
      >
        <Icon name="trash" /> Revoke
      </button>
    </div>
  );
}
