/** The service level objectives, each with its error budget. */
import type { RuleGroup } from "../../api/types";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { href } from "../../app/address";
import { countText } from "../../model/words";
import { Icon } from "../../parts/icon";
import { Empty, Failed, Loading } from "../../parts/states";
import { Table, type Column } from "../../parts/table";
import { budgetLevel, budgetText, burnText, shareText, SLO_VALUES, slosOf, type Slo } from "./slos";

/** The interval of the rules' states: an SLO that burns has its burn rates. */
const REFRESH_MS = 10_000;
const COLUMNS: (string | Column)[] = [
  "SLO",
  "Error budget",
  "State",
  { name: "Good", isNumber: true },
  { name: "Target", isNumber: true },
  { name: "Burn rate", isNumber: true },
];

/** The SLOs of the rules with their newest values, or the error of the values. */
export function useSlos(groups: readonly RuleGroup[]) {
  const load = async (signal: AbortSignal) => (await api.query({ query: SLO_VALUES }, signal)).data;
  const { data, error, reload } = useResource("slos", load, { everyMs: REFRESH_MS }).value;
  return { slos: slosOf(groups, data), isLoading: !data && !error, error, reload };
}

export function SloList({ groups }: { groups: readonly RuleGroup[] }) {
  const { slos, isLoading, error, reload } = useSlos(groups);
  return (
    <section class="card section">
      <div class="card-head">
        <h2>Service level objectives</h2>
      </div>
      {error && <Failed message={`Cannot load the budgets: ${error.message}`} onRetry={reload} />}
      {slos.length === 0 ? (
        <Empty title="No SLOs">
          <p>
            Declare them under <code>slos</code> in a rule file: a target, a window, and the
            expressions of good events and of all events.
          </p>
        </Empty>
      ) : isLoading ? (
        <Loading what="the budgets" />
      ) : (
        <Table label="Service level objectives" class="slos" columns={COLUMNS}>
          {slos.map((slo) => (
            <Row key={`${slo.group.file} ${slo.name}`} slo={slo} />
          ))}
        </Table>
      )}
    </section>
  );
}

function Row({ slo }: { slo: Slo }) {
  const { name, window, target, series, limits } = slo;
  const [worst] = series;
  const long = limits[0]?.long ?? "";
  return (
    <tr>
      <th scope="row">
        <a href={href("/alerts", { show: "slos", slo: name })}>{name}</a>
        {series.length > 1 && <p class="muted">the least of {countText(series.length)} series</p>}
      </th>
      <td class="slo-budget">{worst ? <Budget left={worst.budgetLeft} /> : "–"}</td>
      <td class="nowrap">
        <SloState slo={slo} />
      </td>
      <td class="num">{worst?.good === undefined ? "–" : shareText(worst.good)}</td>
      <td class="num nowrap">
        {target === undefined ? "–" : shareText(target, 4)} <span class="muted">in {window}</span>
      </td>
      <td class="num nowrap">
        {burnText(worst?.burns.get(long))} <span class="muted">in {long}</span>
      </td>
    </tr>
  );
}

export function SloState({ slo: { error, firing, series, target } }: { slo: Slo }) {
  if (error !== undefined || firing !== undefined) {
    return (
      <>
        {firing !== undefined && <span class={`badge severity ${firing}`}>Burning: {firing}</span>}{" "}
        {error !== undefined && (
          <span class="badge bad" title={error}>
            <Icon name="warning" /> Failing
          </span>
        )}
      </>
    );
  }
  // The target has a value after each evaluation; without it, nothing is known.
  if (target === undefined) return <>–</>;
  if (series.length === 0) return <span class="badge">No events</span>;
  const isSpent = (series[0]?.budgetLeft ?? 1) <= 0;
  return (
    <span class="badge">
      <span class={`dot ${isSpent ? "down" : "up"}`} aria-hidden="true" />
      {isSpent ? "Budget spent" : "Within budget"}
    </span>
  );
}

export function Budget({ left }: { left: number }) {
  const level = budgetLevel(left);
  return (
    <>
      <span class={`num ${level}`}>{budgetText(left)}</span>
      <span class={`meter ${level}`} aria-hidden="true">
        <span style={{ width: `${100 * Math.max(0, Math.min(1, left))}%` }} />
      </span>
    </>
  );
}
