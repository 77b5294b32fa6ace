/** A text of rules or of receivers, in an editor. */
import { useSignal } from "@preact/signals";
import { useResource } from "../api/resource";
import { may } from "../api/session";
import type { ComponentChildren } from "preact";
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
  return { kind: RULES, name: /^\/alerts\/rules\/([^/]+)$/.exec(path)?.[1] };
}

const NEW: Loaded = { state: "new" };

export function AlertFileView() {
  const { path, params } = address.value;
  const { kind, name } = placeOf(path);
  const answer = useResource(path, (signal) =>
    name === undefined ? Promise.resolve(NEW) : kind.load(name, signal),
  ).value;
  const note = useSignal<string | undefined>(undefined);
  const [group, rule] = [params.get("group"), params.get("rule")];
  if (kind.needs.some((scope) => may(scope) === false)) return <NoPermission kind={kind} />;
  return (
    <Page class="alert-file" title={kind.title} what={`the ${kind.what}`} answer={answer}>
      {(loaded) => {
        if (loaded.state === "read-only") return <ReadOnly kind={kind} reason={loaded.reason} />;
        if (loaded.state === "missing") return <Missing kind={kind} name={name ?? ""} />;
        return (
          <Editing
            key={path}
            kind={kind}
            fixedName={name}
            stored={loaded.state === "stored" ? loaded.stored : undefined}
            damage={loaded.state === "damaged" ? loaded.faults : []}
            rule={group !== null && rule !== null ? { group, name: rule } : undefined}
            note={note}
          />
        );
      }}
    </Page>
  );
}

function NoPermission({ kind }: { kind: TextKind }) {
  return (
    <>
      <div class="head">
        <h1>{kind.title}</h1>
      </div>
      <NoText kind={kind} title="No permission" empty={`The ${kind.what} cannot be shown`}>
        <p>
          To edit {kind.what}, you need {kind.needs.length > 1 ? "the scopes" : "the scope"}{" "}
          <code>{kind.needs.join(", ")}</code>.
        </p>
      </NoText>
    </>
  );
}

function ReadOnly({ kind, reason }: { kind: TextKind; reason: string }) {
  return (
    <NoText kind={kind} title="Read-only" empty={`These ${kind.what} cannot be edited here`}>
      <p class="text-reason">{reason}</p>
    </NoText>
  );
}

function Missing({ kind, name }: { kind: TextKind; name: string }) {
  return (
    <NoText kind={kind} title={name} empty="No such text">
      <p>Somebody deleted this text, or the address is wrong.</p>
    </NoText>
  );
}

interface NoTextProps {
  kind: TextKind;
  title: string;
  /** The title of the reason. */
  empty: string;
  children: ComponentChildren;
}

/** A view without an editor, and the way back. */
function NoText({ kind, title, empty, children }: NoTextProps) {
  return (
    <>
      <div class="head text-head">
        <BackLink kind={kind} />
        <h2>{title}</h2>
      </div>
      <section class="card">
        <Empty title={empty}>{children}</Empty>
      </section>
    </>
  );
}
