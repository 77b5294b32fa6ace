/** Thresholds of alerts, for charts of the compared series: one request serves all charts. */
import { signal } from "@preact/signals";
import { api } from "../api/client";
import type { PanelQuery, RuleGroup } from "../api/types";
import { comparisonOf, isAbout, plain, type Comparison } from "../model/comparison";
import { isSame } from "../model/same";
import type { DrawnSeries } from "./data";
import type { Threshold } from "./marks";

/** The delay of the first request, after the charts are drawn, and the refresh interval. */
const FIRST_MS = 1500;
const EVERY_MS = 60_000;
/** The most lines of a chart. */
const LINES_MAX = 6;

interface Line {
  /** The rule's name. */
  name: string;
  comparison: Comparison;
}

let stop = () => {};

/** The thresholds of all rules that compare with a number; loaded while a chart is shown. */
export const alertLines = signal<readonly Line[]>([], {
  watched() {
    stop = requestRepeatedly(alertLines.peek().length > 0 ? EVERY_MS : FIRST_MS);
  },
  unwatched() {
    stop();
  },
});

/** Requests after a pause, and again until the returned function is called. */
function requestRepeatedly(first: number): () => void {
  const abort = new AbortController();
  let timer: ReturnType<typeof setTimeout>;
  const wait = (pause: number) => {
    timer = setTimeout(() => {
      void ask(abort.signal).finally(() => {
        if (!abort.signal.aborted) wait(EVERY_MS);
      });
    }, pause);
  };
  wait(first);
  return () => {
    clearTimeout(timer);
    abort.abort();
  };
}

async function ask(signal: AbortSignal): Promise<void> {
  try {
    const { data } = await api.alertingRules(signal);
    const lines = linesOf(data.groups);
    if (!signal.aborted && !isSame(lines, alertLines.peek())) alertLines.value = lines;
  } catch {
    // Charts are drawn without thresholds; the alerts view shows the error.
  }
}

/** The parts of rules that evaluations do not change. */
export function linesOf(groups: readonly RuleGroup[]): Line[] {
  return groups
    .flatMap((group) => group.rules)
    .flatMap(({ type, name, query }): Line[] => {
      const comparison = type === "alerting" ? comparisonOf(query) : undefined;
      return comparison ? [{ name, comparison }] : [];
    });
}

/** The thresholds on a chart of these queries. */
export function thresholdsOf(
  lines: readonly Line[],
  queries: readonly PanelQuery[],
  series: readonly DrawnSeries[],
): Threshold[] {
  const expressions = queries.flatMap((query) =>
    query.kind === "promql" && !query.hidden ? [plain(query.expression)] : [],
  );
  const found = new Map<number, Threshold>();
  for (const { name, comparison } of lines) {
    const isShown =
      expressions.includes(comparison.measured) || series.some((line) => isAbout(comparison, line));
    if (!isShown) continue;
    const { value } = comparison;
    const names = [found.get(value)?.label, name].filter(Boolean);
    found.set(value, { value, label: [...new Set(names)].join(", ") });
  }
  return [...found.values()].slice(0, LINES_MAX);
}
