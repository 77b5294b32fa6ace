/** One service level objective: its error budget and burn rates over its window, and its alerts. */
import { useMemo } from "preact/hooks";
import type { RuleGroup, Silence } from "../../api/types";
import { href } from "../../app/address";
import { Chart } from "../../chart/chart";
import { TimeControls } from "../../chart/controls";
import { useTimeFrame } from "../../chart/frame";
import { countText } from "../../model/words";
import { Icon } from "../../parts/icon";
import { Failed } from "../../parts/states";
import { Table, type Column } from "../../parts/table";
import { Rows } from "./alert-list";
import type { ListedAlert } from "./listed";
import { SelectionBar, useSelection } from "./selection";
import { Budget, SloState, useSlos } from "./slo-list";
import { BUDGET_LEFT, BURN_RATE, burnText, isExceeded, shareText, type Slo } from "./slos";

/** The maximum number of series in the table: those with the least budget. */
const SERIES_MAX = 50;
/** At this burn rate, the budget lasts exactly for the window. */
const EVEN_PACE = [{ value: 1, label: "the budget lasts for the window" }];

interface Props {
  name: string;
  groups: readonly RuleGroup[];
  listed: readonly ListedAlert[];
  silences: readonly Silence[];
  onChange: () => void;
}

export function SloPage({ name, groups, listed, silences, onChange }: Props) {
  const { slos, isLoading, error, reload } = useSlos(groups);
  const slo = slos.find((slo) => slo.name === name);
  const ofSlo = listed.filter((row) => row.group === slo?.group);
  const selection = useSelection(ofSlo);
  return (
    <>
      <div class="head rule-head">
        <a
          class="button quiet icon-only"
          href={href("/alerts", { show: "slos" })}
          aria-label="All SLOs"
          title="All SLOs"
        >
          <Icon name="left" />
        </a>
        <h2>{name}</h2>
        {slo && !isLoading && <SloState slo={slo} />}
        {slo?.target !== undefined && (
          <span class="muted num">
            {shareText(slo.target, 4)} in {slo.window}
          </span>
        )}
        {slo && <a href={href("/alerts", { show: "rules", q: slo.group.name })}>Rules</a>}
      </div>
      {!slo && <Failed message={`There is no SLO ${name}.`} />}
      {error && <Failed message={`Cannot load the budget: ${error.message}`} onRetry={reload} />}
      {slo?.error !== undefined && <Failed message={`A rule fails: ${slo.error}`} />}
      {slo && <Charts key={name} slo={slo} />}
      {slo && <BurnRates slo={slo} />}
      {ofSlo.length > 0 && (
        <section class="card section">
          <div class="card-head">
            <h2>Active alerts</h2>
          </div>
          <SelectionBar listed={ofSlo} active={listed} selection={selection} onChange={onChange} />
          <Rows listed={ofSlo} silences={silences} selection={selection} onChange={onChange} />
        </section>
      )}
    </>
  );
}

function Charts({ slo: { name, window, limits } }: { slo: Slo }) {
  const frame = useTimeFrame({ range: window, resolution: "1h" }, "slo");
  const windows = limits.map(({ long }) => long).join("|");
  const [budget, burn] = useMemo(() => {
    const ofSlo = `slo=${JSON.stringify(name)}`;
    return [
      [{ kind: "promql" as const, expression: `100 * ${BUDGET_LEFT}{${ofSlo}}` }],
      [{ kind: "promql" as const, expression: `${BURN_RATE}{${ofSlo}, window=~"${windows}"}` }],
    ];
  }, [name, windows]);
  return (
    <section class="section slo-charts">
      <TimeControls frame={frame} />
      <div class="slo-pair">
        <Chart
          title="Error budget left"
          id="budget"
          unit="percent"
          frame={frame}
          queries={budget}
        />
        <Chart title="Burn rate" id="burn" frame={frame} queries={burn} thresholds={EVEN_PACE} />
      </div>
    </section>
  );
}

/** The burn rates now, in the windows of each alert. */
function BurnRates({ slo: { series, limits } }: { slo: Slo }) {
  if (series.length === 0) return null;
  const columns: (string | Column)[] = [
    ...(series.length > 1 ? ["Series"] : []),
    "Error budget",
    ...limits.map(({ severity, long, short, rate }) => ({
      name: `${severity}: over ${rate} in ${long} and ${short}`,
      isNumber: true,
    })),
  ];
  const leftOut = series.length - SERIES_MAX;
  return (
    <section class="card section">
      <div class="card-head">
        <h2>Burn rates</h2>
      </div>
      <Table label="Burn rates" class="slos" columns={columns}>
        {series.slice(0, SERIES_MAX).map((entry) => (
          <tr key={JSON.stringify(entry.tags)}>
            {series.length > 1 && (
              <th scope="row">
                {Object.entries(entry.tags)
                  .map(([name, value]) => `${name}=${value}`)
                  .join(" ")}
              </th>
            )}
            <td class="slo-budget">
              <Budget left={entry.budgetLeft} />
            </td>
            {limits.map((limit) => (
              <td
                key={`${limit.long} ${limit.short}`}
                class={isExceeded(entry, limit) ? "num nowrap bad" : "num nowrap"}
              >
                {isExceeded(entry, limit) && <Icon name="warning" />}{" "}
                {burnText(entry.burns.get(limit.long))} and {burnText(entry.burns.get(limit.short))}
              </td>
            ))}
          </tr>
        ))}
      </Table>
      {leftOut > 0 && (
        <p class="card-foot muted">{countText(leftOut)} series with more budget left out.</p>
      )}
    </section>
  );
}
