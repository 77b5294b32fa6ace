/** A text of rules or of receivers, in an editor. */
import { useSignal } from "@preact/signals";
import { useResource } from "../api/resource";
import { may } from "../api/session";
import { address } from "../app/address";
import { Page } from "../parts/page";
import { Empty } from "../parts/states";
import { Editing } from "./alert-file/editing";
import { BackLink } from "./alert-file/head";
import { RECEIVERS, RULES, type Loaded, type TextKind } from "./alert-file/kinds";
import "../styles/dialog.css";
import "./alert-file/alert-file.css";

/** The text that the address names; without a name, new rules. */
interface Place {
  kind: TextKind;
  name: string | undefined;
}

function placeOf(path: string): Place {
  if (path === "/alerts/receivers") return { kind: RECEIVERS, name: "notifications" };
  const name = /^\/alerts\/rules\/([^/]+)$/.exec(path)?.[1];
  return { kind: RULES, name: name === undefined ? undefined : decodeURIComponent(name) };
}

const NEW: Loaded = { stored: undefined, reason: undefined };

export function AlertFileView() {
  const { path, params } = address.value;
  const { kind, name } = placeOf(path);
  const answer = useResource(path, (signal) =>
    name === undefined ? Promise.resolve(NEW) : kind.load(name, signal),
  ).value;
  const note = useSignal<string | undefined>(undefined);
  const [group, rule] = [params.get("group"), params.get("rule")];
  if (may("admin") === false) return <NoPermission kind={kind} />;
  return (
    <Page class="alert-file" title={kind.title} what={`the ${kind.what}`} answer={answer}>
      {({ stored, reason }) =>
        reason === undefined ? (
          <Editing
            key={path}
            kind={kind}
            stored={stored}
            rule={group !== null && rule !== null ? { group, name: rule } : undefined}
            note={note}
          />
        ) : (
          <ReadOnly kind={kind} reason={reason} />
        )
      }
    </Page>
  );
}

function NoPermission({ kind: { title, what } }: { kind: TextKind }) {
  return (
    <>
      <div class="head">
        <h1>{title}</h1>
      </div>
      <section class="card">
        <Empty title="No permission">
          <p>
            To edit {what}, you need the scope <code>admin</code>.
          </p>
        </Empty>
      </section>
    </>
  );
}

function ReadOnly({ kind, reason }: { kind: TextKind; reason: string }) {
  return (
    <>
      <div class="head text-head">
        <BackLink kind={kind} />
        <h2>Read-only</h2>
      </div>
      <section class="card">
        <Empty title={`These ${kind.what} cannot be edited here`}>
          <p class="text-reason">{reason}</p>
        </Empty>
      </section>
    </>
  );
}
