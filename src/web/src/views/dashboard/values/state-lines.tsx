/** The states of each series over time. */
import type { Level, PanelThreshold } from "../../../api/types";
import { momentText } from "../../../app/moment";
import type { ChartData } from "../../../chart/data";
import { valueText } from "../../../model/units";
import { stateRuns, thresholdsFor, type StateRun } from "./states";

interface Props {
  data: ChartData;
  thresholds: readonly PanelThreshold[] | undefined;
}

export function States({ data, thresholds: chosen }: Props) {
  const { start, end } = data.window;
  const thresholds = thresholdsFor(data.series, chosen);
  const place = (at: number) =>
    (100 * (Math.min(Math.max(at, start), end) - start)) / (end - start);
  return (
    <>
      <ul class="states">
        {data.series.map((series) => {
          const runs = stateRuns(data.times, series.values, end, thresholds);
          const text = (run: StateRun) => valueText(run.value, series.unit);
          const last = runs.at(-1);
          return (
            <li key={series.key}>
              <span class="values-label" title={series.label}>
                {series.label}
              </span>
              <svg
                viewBox="0 0 100 10"
                preserveAspectRatio="none"
                role="img"
                aria-label={`${runs.length} states, at last ${last ? stateName(last, text(last)) : "none"}`}
              >
                {runs.map((run) => (
                  <rect
                    key={run.start}
                    class={`level ${run.level}`}
                    x={place(run.start)}
                    width={Math.max(place(run.end) - place(run.start), 0.2)}
                    height="10"
                  >
                    <title>{`${stateName(run, text(run))}: ${momentText(run.start)} – ${momentText(run.end)}`}</title>
                  </rect>
                ))}
              </svg>
            </li>
          );
        })}
      </ul>
      <p class="states-ends muted num">
        <span>{momentText(start)}</span>
        <Legend thresholds={thresholds} data={data} />
        <span>{momentText(end)}</span>
      </p>
    </>
  );
}

const NAMES: Record<Level, string> = { none: "", good: "good", warn: "warning", bad: "bad" };

function stateName({ level }: StateRun, value: string): string {
  return level === "none" ? value : `${value} (${NAMES[level]})`;
}

/** The values from which each level begins. */
function Legend({ thresholds, data }: { thresholds: readonly PanelThreshold[]; data: ChartData }) {
  const unit = data.series[0]?.unit;
  if (!unit || thresholds.length === 0) return null;
  return (
    <span class="states-legend">
      {thresholds.map(({ from, level }, k) => (
        <span key={k}>
          <span class={`states-key level ${level}`} aria-hidden="true" />
          {from === undefined
            ? `below ${valueText(thresholds[k + 1]?.from, unit)}`
            : `from ${valueText(from, unit)}`}
        </span>
      ))}
    </span>
  );
}
