/** The list of active alerts, with actions for each. */
import { useSignal } from "@preact/signals";
import type { Alert, RuleGroup, Silence } from "../../api/types";
import { href, param, setParams } from "../../app/address";
import { Ago } from "../../parts/ago";
import { Icon } from "../../parts/icon";
import { Search } from "../../parts/search";
import { Empty } from "../../parts/states";
import {
  chosenSeverities,
  commonLabels,
  filterAlerts,
  groupsOf,
  instantOf,
  isSilenced,
  nameOfRule,
  ownLabels,
  severitiesOf,
  severityOf,
  valueText,
  withSeverity,
  type AlertGroup,
  type ListedAlert,
} from "./listed";
import { AcknowledgeDialog } from "./acknowledge-dialog";
import { momentText } from "../../app/moment";
import { NoRules } from "./no-rules";
import { Deliveries } from "./deliveries";
import { AlertChoice, SelectionBar, useSelection, type Selection } from "./selection";
import { SilenceDialog } from "./silence-dialog";

const search = param("q");
const state = param("state");
const severity = param("severity");

interface RowsProps {
  listed: readonly ListedAlert[];
  /** The known silences, for authors and comments. */
  silences: readonly Silence[];
  /** The choice of several alerts; without it, the rows have no checkboxes. */
  selection?: Selection;
  onChange: () => void;
}

interface Props extends Omit<RowsProps, "selection"> {
  groups: readonly RuleGroup[];
}

export function AlertList({ listed, groups, silences, onChange }: Props) {
  const severities = chosenSeverities(severity.value);
  const filtered = filterAlerts(listed, search.value, state.value, severities);
  const selection = useSelection(filtered);
  if (groups.length === 0) return <NoRules />;
  const shared = { silences, selection, onChange };
  return (
    <section class="card section">
      <div class="card-head">
        <h2>Active alerts</h2>
        <Severities listed={filterAlerts(listed, search.value, state.value)} />
        <Search
          label="Search alerts"
          placeholder="Search labels and texts"
          param="q"
          text={search.value}
        />
      </div>
      <SelectionBar listed={filtered} active={listed} selection={selection} onChange={onChange} />
      {filtered.length > 0 ? (
        groupsOf(filtered).map((group) =>
          group.name === undefined ? (
            <Rows key={group.key} listed={group.alerts} {...shared} />
          ) : (
            <FoldedGroup key={group.key} group={group} {...shared} />
          ),
        )
      ) : listed.length > 0 ? (
        <Empty title="No matching alert">
          <button
            type="button"
            class="button"
            onClick={() => setParams({ q: undefined, state: undefined, severity: undefined })}
          >
            Show all
          </button>
        </Empty>
      ) : (
        <Empty title="No active alerts">
          <p>No rule has an active alert.</p>
        </Empty>
      )}
    </section>
  );
}

/** The choice of severities; none means all. */
function Severities({ listed }: { listed: readonly ListedAlert[] }) {
  const severities = severitiesOf(listed);
  const chosen = chosenSeverities(severity.value);
  if (severities.length < 2 && chosen.length === 0) return null;
  return (
    <div class="choices" role="group" aria-label="Severity">
      {severities.map(({ name, count }) => (
        <button
          key={name}
          type="button"
          aria-pressed={chosen.includes(name)}
          onClick={() => setParams({ severity: withSeverity(severity.value, name) })}
        >
          {name} <span class="num">{count.toLocaleString("en")}</span>
        </button>
      ))}
    </div>
  );
}

interface GroupProps extends Omit<RowsProps, "listed"> {
  group: AlertGroup;
}

/** Many alerts of a rule in one line, with their rows on demand. */
function FoldedGroup({ group, ...shared }: GroupProps) {
  const { onChange } = shared;
  const isOpen = useSignal(false);
  const dialog = useSignal<OpenDialog["what"] | undefined>(undefined);
  const close = () => (dialog.value = undefined);
  const firing = group.alerts.filter(
    (row) => row.alert.state === "firing" && !isSilenced(row),
  ).length;
  const severities = severitiesOf(group.alerts);
  const labels = commonLabels(group.alerts);
  return (
    <details
      class="alert-group"
      open={isOpen.value}
      onToggle={(event) => (isOpen.value = event.currentTarget.open)}
    >
      <summary>
        <Icon name="right" />
        <strong>{group.name}</strong>
        <span class="num">× {group.alerts.length.toLocaleString("en")}</span>
        {severities.map(({ name }) => (
          <span key={name} class={`badge severity ${name.toLowerCase()}`}>
            {name}
          </span>
        ))}
        <span class="muted num">{firing.toLocaleString("en")} firing</span>
      </summary>
      {isOpen.value && (
        <>
          <div class="alert-group-actions">
            <button
              type="button"
              class="button small"
              onClick={() => (dialog.value = "acknowledge")}
            >
              <Icon name="check" /> Acknowledge all
            </button>
            <button type="button" class="button small" onClick={() => (dialog.value = "silence")}>
              <Icon name="mute" /> Silence all
            </button>
          </div>
          <Rows listed={group.alerts} {...shared} />
        </>
      )}
      {dialog.value === "silence" && (
        <SilenceDialog labels={labels} onClose={close} onDone={onChange} />
      )}
      {dialog.value === "acknowledge" && (
        <AcknowledgeDialog alerts={[{ labels }]} onClose={close} onDone={onChange} />
      )}
    </details>
  );
}

/** The maximum number of rows listed at once. */
const ROWS_MAX = 200;

/** The open dialog and its alert. */
interface OpenDialog {
  what: "silence" | "acknowledge";
  alert: Alert;
}

/** The rows of alerts: of the whole list, or of one rule. */
export function Rows({ listed, silences, selection, onChange }: RowsProps) {
  const openDialog = useSignal<OpenDialog | undefined>(undefined);
  const close = () => (openDialog.value = undefined);
  const showsAll = useSignal(false);
  const rows = showsAll.value ? listed : listed.slice(0, ROWS_MAX);
  return (
    <>
      <ul class="alert-rows">
        {rows.map((row) => (
          <Row
            key={row.key}
            listed={row}
            selection={selection}
            silences={silences.filter(({ id }) => row.alert.silencedBy?.includes(id))}
            onOpenDialog={(what) => (openDialog.value = { what, alert: row.alert })}
          />
        ))}
      </ul>
      {rows.length < listed.length && (
        <div class="card-foot">
          <button type="button" class="button small" onClick={() => (showsAll.value = true)}>
            Show all {listed.length}
          </button>
        </div>
      )}
      {openDialog.value?.what === "silence" && (
        <SilenceDialog labels={openDialog.value.alert.labels} onClose={close} onDone={onChange} />
      )}
      {openDialog.value?.what === "acknowledge" && (
        <AcknowledgeDialog alerts={[openDialog.value.alert]} onClose={close} onDone={onChange} />
      )}
    </>
  );
}

interface RowProps {
  listed: ListedAlert;
  silences: readonly Silence[];
  selection: Selection | undefined;
  onOpenDialog: (what: OpenDialog["what"]) => void;
}

function Row({ listed, silences, selection, onOpenDialog }: RowProps) {
  const { alert, rule, group } = listed;
  const since = instantOf(alert.activeAt);
  const severity = severityOf(alert);
  const text = alert.annotations["summary"] ?? alert.annotations["description"];
  return (
    <li class={isSilenced(listed) ? "alert-row is-silenced" : "alert-row"}>
      <div class="alert-state">
        {selection && <AlertChoice row={listed} selection={selection} />}
        <StateBadge listed={listed} />
        {severity && <span class={`badge severity ${severity.toLowerCase()}`}>{severity}</span>}
      </div>
      <div class="alert-what">
        <a href={href("/alerts", { rule: nameOfRule(group, rule) })}>{rule.name}</a>
        {text && <p>{text}</p>}
        <ul class="labels" aria-label="Labels">
          {ownLabels(listed).map(([name, value]) => (
            <li key={name} class="badge">
              {name}={value}
            </li>
          ))}
        </ul>
        <div class="alert-notes">
          {alert.acknowledged && (
            <p class="alert-note">
              <Icon name="check" /> Acknowledged by {alert.acknowledged.by},{" "}
              <Ago at={alert.acknowledged.at} />
              {alert.acknowledged.until !== undefined &&
                `, until ${momentText(alert.acknowledged.until)}`}
              {alert.acknowledged.comment && `: ${alert.acknowledged.comment}`}
            </p>
          )}
          {silences.map((silence) => (
            <p key={silence.id} class="alert-note muted">
              <Icon name="mute" /> Silenced by {silence.createdBy || "an unknown author"}:{" "}
              {silence.comment || "no comment"}
            </p>
          ))}
          <Deliveries deliveries={alert.deliveries ?? []} />
        </div>
      </div>
      <dl class="alert-facts num">
        <div>
          <dt>Value</dt>
          <dd>{alert.noData ? "no data" : valueText(alert.value)}</dd>
        </div>
        <div>
          <dt>Since</dt>
          <dd>{since === undefined ? "–" : <Ago at={since} />}</dd>
        </div>
      </dl>
      <div class="alert-actions">
        <button type="button" class="button small" onClick={() => onOpenDialog("acknowledge")}>
          <Icon name="check" /> {alert.acknowledged ? "Acknowledged" : "Acknowledge"}
        </button>
        <button type="button" class="button small" onClick={() => onOpenDialog("silence")}>
          <Icon name="mute" /> Silence
        </button>
      </div>
    </li>
  );
}

function StateBadge({ listed }: { listed: ListedAlert }) {
  if (isSilenced(listed)) return <span class="badge">Silenced</span>;
  const { alert } = listed;
  const isFiring = alert.state === "firing";
  return (
    <span class={isFiring ? "badge alert-firing" : "badge"}>
      <span class={isFiring ? "dot down" : "dot late"} aria-hidden="true" />
      {!isFiring ? "Pending" : alert.noData ? "No data" : "Firing"}
    </span>
  );
}
