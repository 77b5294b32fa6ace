/** Thresholds of alerts, for charts of the compared series: one request serves all charts. */
import { signal } from "@preact/signals";
import { api } from "../api/client";
import type { PanelQuery, RuleGroup } from "../api/types";
import { comparisonOf, comparesSeries, withoutSpaces, type Comparison } from "../model/comparison";
import { isSame } from "../model/same";
import type { DrawnSeries } from "./data";
import type { Threshold } from "./marks";

/** The delay of the first request, after the charts are drawn, and the refresh interval. */
const FIRST_DELAY_MS = 1500;
const REFRESH_MS = 60_000;
/** The maximum number of lines of a chart. */
const LINES_MAX = 6;

interface RuleComparison {
  /** The rule's name. */
  name: string;
  comparison: Comparison;
}

let stop = () => {};

/** The thresholds of all rules that compare with a number; loaded while a chart is shown. */
export const alertLines = signal<readonly RuleComparison[]>([], {
  watched() {
    stop = requestRepeatedly(alertLines.peek().length > 0 ? REFRESH_MS : FIRST_DELAY_MS);
  },
  unwatched() {
    stop();
  },
});

/** Requests after a pause, and again until the returned function is called. */
function requestRepeatedly(firstDelay: number): () => void {
  const abort = new AbortController();
  let timer: ReturnType<typeof setTimeout>;
  const scheduleRequest = (delay: number) => {
    timer = setTimeout(() => {
      void requestRules(abort.signal).finally(() => {
        if (!abort.signal.aborted) scheduleRequest(REFRESH_MS);
      });
    }, delay);
  };
  scheduleRequest(firstDelay);
  return () => {
    clearTimeout(timer);
    abort.abort();
  };
}

async function requestRules(signal: AbortSignal): Promise<void> {
  try {
    const { data } = await api.alertingRules(signal);
    const lines = comparisonsOf(data.groups);
    if (!signal.aborted && !isSame(lines, alertLines.peek())) alertLines.value = lines;
  } catch {
    // Charts are drawn without thresholds; the alerts view shows the error.
  }
}

/** The parts of rules that evaluations do not change. */
export function comparisonsOf(groups: readonly RuleGroup[]): RuleComparison[] {
  return groups
    .flatMap((group) => group.rules)
    .flatMap(({ type, name, query }): RuleComparison[] => {
      const comparison = type === "alerting" ? comparisonOf(query) : undefined;
      return comparison ? [{ name, comparison }] : [];
    });
}

/** The thresholds on a chart of these queries. */
export function thresholdsOf(
  lines: readonly RuleComparison[],
  queries: readonly PanelQuery[],
  series: readonly DrawnSeries[],
): Threshold[] {
  const expressions = queries.flatMap((query) =>
    query.kind === "promql" && !query.hidden ? [withoutSpaces(query.expression)] : [],
  );
  const thresholds = new Map<number, Threshold>();
  for (const { name, comparison } of lines) {
    const isShown =
      expressions.includes(comparison.normalized) ||
      series.some((line) => comparesSeries(comparison, line));
    if (!isShown) continue;
    const { value } = comparison;
    const names = [thresholds.get(value)?.label, name].filter(Boolean);
    thresholds.set(value, { value, label: [...new Set(names)].join(", ") });
  }
  return [...thresholds.values()].slice(0, LINES_MAX);
}
