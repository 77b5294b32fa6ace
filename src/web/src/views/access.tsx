/** Access control: keys, codes, users, and the audit of their changes. */
import { useEffect } from "preact/hooks";
import { caller, may } from "../api/session";
import type { Scope } from "../api/types";
import { param, setParams } from "../app/address";
import { Empty, Loading } from "../parts/states";
import { Audit } from "./access/audit";
import { Codes } from "./access/codes";
import { Keys } from "./access/keys";
import { Users } from "./access/users";
import "../styles/tiles.css";
import "../styles/dialog.css";
import "./access/access.css";

const LISTS: readonly { name: string; label: string; needs: Scope }[] = [
  { name: "keys", label: "Keys", needs: "admin" },
  { name: "codes", label: "Codes", needs: "admin" },
  { name: "users", label: "Users", needs: "admin" },
  { name: "audit", label: "Audit", needs: "operate" },
];

/** The parameters of each list, which are removed when another list is chosen. */
const NO_FILTERS = {
  ...{ q: undefined, keys: undefined },
  ...{ who: undefined, range: undefined, from: undefined, until: undefined },
};

const shownParam = param("show");

export function Access() {
  useEffect(() => {
    document.title = "Access · Granary";
  }, []);
  const permitted = LISTS.filter(({ needs }) => may(needs) === true);
  const shown = permitted.find(({ name }) => name === shownParam.value) ?? permitted[0];
  return (
    <div class="access-view">
      <div class="head">
        <h1>Access</h1>
      </div>
      {caller.value === undefined ? (
        <section class="card">
          <Loading />
        </section>
      ) : shown === undefined ? (
        <section class="card">
          <Empty title="No permission">
            <p>
              Keys, codes and users need the scope <code>admin</code>, the audit{" "}
              <code>operate</code>.
            </p>
          </Empty>
        </section>
      ) : (
        <>
          <ListChoice permitted={permitted} shown={shown.name} />
          <List name={shown.name} />
        </>
      )}
    </div>
  );
}

function List({ name }: { name: string }) {
  switch (name) {
    case "audit":
      return <Audit />;
    case "codes":
      return <Codes />;
    case "users":
      return <Users />;
    default:
      return <Keys />;
  }
}

function ListChoice({ permitted, shown }: { permitted: typeof LISTS; shown: string }) {
  return (
    <div class="choices access-tabs" role="group" aria-label="Lists">
      {permitted.map(({ name, label }, k) => (
        <button
          key={name}
          type="button"
          aria-pressed={name === shown}
          onClick={() => setParams({ ...NO_FILTERS, show: k === 0 ? undefined : name })}
        >
          {label}
        </button>
      ))}
    </div>
  );
}
