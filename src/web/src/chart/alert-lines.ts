/** The thresholds of alerts, for the charts that show what they compare: one request for all charts. */
import { signal } from "@preact/signals";
import { api } from "../api/client";
import type { AlertingRule, PanelQuery } from "../api/types";
import { comparisonOf, isAbout, plain, type Comparison } from "../model/comparison";
import type { DrawnSeries } from "./data";
import type { Threshold } from "./marks";

/** After the charts are drawn, and now and then. */
const FIRST_MS = 1500;
const EVERY_MS = 60_000;
/** Lines of a chart, at most. */
const LINES_MAX = 6;

interface Line {
  rule: AlertingRule;
  comparison: Comparison;
}

let timer: ReturnType<typeof setTimeout> | undefined;

/** Of all rules that compare something with a number; asked for while a chart is shown. */
export const alertLines = signal<readonly Line[]>([], {
  watched() {
    timer = setTimeout(() => void ask(), alertLines.peek().length > 0 ? EVERY_MS : FIRST_MS);
  },
  unwatched() {
    clearTimeout(timer);
  },
});

async function ask(): Promise<void> {
  try {
    const { data } = await api.alertingRules();
    const rules = data.groups.flatMap((group) => group.rules);
    const lines = rules.flatMap((rule): Line[] => {
      const comparison = rule.type === "alerting" ? comparisonOf(rule.query) : undefined;
      return comparison && rule.type === "alerting" ? [{ rule, comparison }] : [];
    });
    const isSame = JSON.stringify(lines) === JSON.stringify(alertLines.peek());
    if (!isSame) alertLines.value = lines;
  } catch {
    // Charts are drawn without them: the view of alerts says what is wrong.
  }
  timer = setTimeout(() => void ask(), EVERY_MS);
}

/** Where the lines of alerts lie on a chart of these queries. */
export function thresholdsOf(
  lines: readonly Line[],
  queries: readonly PanelQuery[],
  series: readonly DrawnSeries[],
): Threshold[] {
  const expressions = queries.flatMap((query) =>
    query.kind === "promql" && !query.hidden ? [plain(query.expression)] : [],
  );
  const found = new Map<number, Threshold>();
  for (const { rule, comparison } of lines) {
    const isShown =
      expressions.includes(comparison.measured) || series.some((one) => isAbout(comparison, one));
    if (!isShown) continue;
    const { value } = comparison;
    const names = [found.get(value)?.label, rule.name].filter(Boolean);
    found.set(value, { value, label: [...new Set(names)].join(", ") });
  }
  return [...found.values()].slice(0, LINES_MAX);
}
