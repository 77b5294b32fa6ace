/** A record of the audit: a row of the table, or a card on a narrow screen. */
import type { AuditRecord } from "../../api/types";
import { momentText, shortMomentText } from "../../app/moment";

const KINDS = {
  key: "key",
  user: "user",
  client: "certificate",
  code: "code",
  machine: "on the machine",
  none: "",
} as const;

const OUTCOMES = {
  done: { text: "Done", tone: "good" },
  failed: { text: "Failed", tone: "warn" },
  refused: { text: "Refused", tone: "bad" },
} as const;

export function AuditRow({ record }: { record: AuditRecord }) {
  return (
    <tr>
      <td class="num-left">
        <Moment record={record} />
      </td>
      <th scope="row">
        <Who record={record} />
      </th>
      <td class="audit-action">{record.action}</td>
      <td class="audit-object mono">{record.object}</td>
      <td>
        <Outcome record={record} />
      </td>
    </tr>
  );
}

export function AuditCard({ record }: { record: AuditRecord }) {
  return (
    <li class="access-card">
      <div class="audit-card-head">
        <Who record={record} />
        <span class="muted num">
          <Moment record={record} />
        </span>
      </div>
      <div class="audit-action">
        {record.action} {record.object !== "" && <span class="mono">{record.object}</span>}
      </div>
      <Outcome record={record} />
    </li>
  );
}

function Moment({ record: { at } }: { record: AuditRecord }) {
  return <span title={momentText(at)}>{shortMomentText(at)}</span>;
}

function Who({ record: { kind, who, address } }: { record: AuditRecord }) {
  const about = [KINDS[kind], address].filter(Boolean).join(" · ");
  return (
    <div class="access-name">
      <span>{who === "" ? <span class="muted">nobody</span> : who}</span>
      {about !== "" && <small class="muted">{about}</small>}
    </div>
  );
}

function Outcome({ record: { outcome, status, reason, count } }: { record: AuditRecord }) {
  const { text, tone } = OUTCOMES[outcome];
  return (
    <div class="access-name">
      <span class="badge audit-outcome">
        <span class={`dot ${tone}`} aria-hidden="true" />
        {text}
        {count > 1 && ` × ${count.toLocaleString("en")}`}
      </span>
      <small class="muted">{[status, reason].filter(Boolean).join(" · ")}</small>
    </div>
  );
}
