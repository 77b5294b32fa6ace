/** The keys, with actions to make, rotate and revoke a key. */
import { useSignal } from "@preact/signals";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import type { KeyEntry, KeyWithToken } from "../../api/types";
import { param, setParams } from "../../app/address";
import { countWithNoun } from "../../model/words";
import { Icon } from "../../parts/icon";
import { narrow } from "../../parts/narrow";
import { Search } from "../../parts/search";
import { Empty, Failed, Loading } from "../../parts/states";
import { Table, type Column } from "../../parts/table";
import { AccessIsOff } from "./access-is-off";
import { RevokeDialog, RotateDialog } from "./key-dialogs";
import { keysBy, keysMatching, type KeyColumn } from "./key-list";
import { KeyCard, KeyRow } from "./key-row";
import { NewKeyDialog } from "./new-key";
import { SecretDialog } from "./secret-dialog";

const REFRESH_MS = 30_000;
/** The number of keys that are drawn at first, and added by each click. */
const PART = 100;

type Open =
  | { dialog: "new" }
  | { dialog: "rotate" | "revoke"; entry: KeyEntry }
  | { dialog: "secret"; shown: KeyWithToken };

const sortParam = param("keys", "name");
const textParam = param("q");

const SORTED: readonly { column: KeyColumn; name: string }[] = [
  { column: "created", name: "Made" },
  { column: "expires", name: "Expires" },
  { column: "used", name: "Last use" },
];

export function Keys() {
  const keys = useResource("keys", (signal) => api.keys(signal), { everyMs: REFRESH_MS });
  const open = useSignal<Open | undefined>(undefined);
  const { data, error, reload } = keys.value;
  const close = () => (open.value = undefined);
  const show = (shown: KeyWithToken) => {
    open.value = { dialog: "secret", shown };
    reload();
  };
  return (
    <>
      {data?.access === false && <AccessIsOff />}
      <section class="card section" aria-labelledby="keys-title">
        <div class="card-head">
          <h2 id="keys-title">Keys</h2>
          {data && <span class="muted num">{countWithNoun(data.keys.length, "key")}</span>}
          <Search label="Search keys" placeholder="Search keys" param="q" text={textParam.value} />
          <button
            type="button"
            class="button primary"
            onClick={() => (open.value = { dialog: "new" })}
          >
            <Icon name="plus" /> New key
          </button>
        </div>
        {data ? (
          <KeyList keys={data.keys} onOpen={(next) => (open.value = next)} />
        ) : error ? (
          <Failed message={`Cannot load the keys: ${error.message}`} onRetry={reload} />
        ) : (
          <Loading what="keys" />
        )}
      </section>
      {open.value?.dialog === "new" && <NewKeyDialog onClose={close} onMade={show} />}
      {open.value?.dialog === "rotate" && (
        <RotateDialog entry={open.value.entry} onClose={close} onRotated={show} />
      )}
      {open.value?.dialog === "revoke" && (
        <RevokeDialog entry={open.value.entry} onClose={close} onRevoked={reload} />
      )}
      {open.value?.dialog === "secret" && <SecretDialog shown={open.value.shown} onClose={close} />}
    </>
  );
}

function KeyList({ keys, onOpen }: { keys: KeyEntry[]; onOpen: (open: Open) => void }) {
  const limit = useSignal(PART);
  const column = SORTED.find(({ column }) => column === sortParam.value)?.column ?? "name";
  const listed = keysBy(keysMatching(keys, textParam.value), column);
  const shown = listed.slice(0, limit.value);
  if (keys.length === 0) {
    return (
      <Empty title="No keys yet">
        <p>Programs that send or query samples get a key each.</p>
      </Empty>
    );
  }
  if (shown.length === 0) return <p class="nothing">No key matches “{textParam.value}”.</p>;
  const open = (entry: KeyEntry) => (dialog: "rotate" | "revoke") => onOpen({ dialog, entry });
  return (
    <>
      {narrow.value ? (
        <ul class="access-cards">
          {shown.map((entry) => (
            <KeyCard key={entry.id} entry={entry} onDo={open(entry)} />
          ))}
        </ul>
      ) : (
        <Table label="Keys" class="access-table" columns={columnsOf(column)}>
          {shown.map((entry) => (
            <KeyRow key={entry.id} entry={entry} onDo={open(entry)} />
          ))}
        </Table>
      )}
      {shown.length < listed.length && (
        <div class="card-foot">
          <button type="button" class="button small" onClick={() => (limit.value += PART)}>
            Show more of {countWithNoun(listed.length, "key")}
          </button>
        </div>
      )}
    </>
  );
}

function columnsOf(sorted: KeyColumn): (string | Column)[] {
  const sortable = (column: KeyColumn, name: string): Column => {
    const direction = column === "created" ? "descending" : "ascending";
    const onSort = () =>
      setParams({ keys: column === "name" ? undefined : column }, { replace: true });
    return { name, sort: { direction, isActive: column === sorted, onSort } };
  };
  const times = SORTED.map(({ column, name }) => sortable(column, name));
  return [sortable("name", "Key"), "Scopes", ...times, "Actions"];
}
