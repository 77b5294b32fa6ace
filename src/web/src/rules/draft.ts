/** A rule made from a chart: its expression and rule file. Pure. */
import type { Display, Kind, MetricQuery, PanelQuery } from "../api/types";
import { withoutBrackets } from "../model/comparison";
import { isPlainNumber, quantityOf } from "../model/quantity";
import type { Unit } from "../model/units";
import { namesOf, selectionOf, type Selection } from "../queries/tags";

export const OPERATORS = [">", ">=", "<", "<="] as const;
export const SEVERITIES = ["", "info", "warning", "critical"] as const;

export interface RuleDraft {
  name: string;
  /** The compared expression. */
  expression: string;
  operator: (typeof OPERATORS)[number];
  /** The threshold as typed: `0.9`, `5GB`. */
  value: string;
  /** The unit of the expression, if known. */
  unit?: Unit | undefined;
  /** The duration of `for`, such as `5m`; empty for none. */
  lasting: string;
  severity: string;
  summary: string;
}

const METRIC_NAME_PATTERN = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL_NAME_PATTERN = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

const labelName = (name: string) => (LABEL_NAME_PATTERN.test(name) ? name : JSON.stringify(name));

/** ` by (host, "data.center") `; empty without groups. */
function byClauseOf({ group_by }: Pick<MetricQuery, "group_by">): string {
  const names = namesOf(group_by).map(labelName);
  return names.length > 0 ? ` by (${names.join(", ")}) ` : "";
}

/** Series with these tags as a PromQL selector. */
export function selectorOf(metric: string, tags: Selection): string {
  const isPlain = METRIC_NAME_PATTERN.test(metric);
  const pairs = [...tags].map(([name, value]) => `${labelName(name)}=${JSON.stringify(value)}`);
  const selectorText = [...(isPlain ? [] : [JSON.stringify(metric)]), ...pairs].join(",");
  return `${isPlain ? metric : ""}${selectorText ? `{${selectorText}}` : ""}`;
}

export interface DrawnNumber {
  kind: Kind | undefined;
  display: Display | undefined;
  /** The window of rates; `5m` by default. */
  window?: string;
}

/** An expression for the drawn numbers of a query. */
export function expressionOf(query: PanelQuery, number: DrawnNumber): string {
  if (query.kind === "promql") return query.expression.trim();
  return metricExpression(query, selectionOf(query.tags), number);
}

/** An expression for the drawn numbers of a query's series with these tags. */
export function metricExpression(
  query: Pick<MetricQuery, "metric" | "group_by" | "merge">,
  tags: Selection,
  { kind, display, window = "5m" }: DrawnNumber,
): string {
  const selector = selectorOf(query.metric, tags);
  if (kind?.endsWith("histogram"))
    return histogramExpression(query, selector, { kind, display, window });
  const isCounted = kind === "counter" || kind === "delta";
  const isTotal = display === "total" || (kind === "delta" && display !== "avg_per_sec");
  const perSeries = isCounted
    ? `${isTotal ? "increase" : "rate"}(${selector}[${window}])`
    : selector;
  const byClause = byClauseOf(query);
  if (byClause === "" && !query.merge) return perSeries;
  return `${isCounted ? "sum" : "avg"}${byClause}(${perSeries})`;
}

/** An expression for a percentile of histograms, or for their number of observations. */
function histogramExpression(
  query: Pick<MetricQuery, "group_by" | "merge">,
  selector: string,
  { kind, display, window }: DrawnNumber & { window: string },
): string {
  const isPerSecond = display === "avg_per_sec" || display === "sum_per_sec";
  const call = kind === "gaugehistogram" ? "sum_over_time" : isPerSecond ? "rate" : "increase";
  const recent = `${call}(${selector}[${window}])`;
  const byClause = byClauseOf(query);
  const merged = byClause || query.merge ? `sum${byClause}(${recent})` : recent;
  const percent = /^p(\d+(?:\.\d+)?)$/.exec(display ?? "")?.[1];
  return percent === undefined
    ? `histogram_count(${merged})`
    : `histogram_quantile(${Number((Number(percent) / 100).toFixed(4))}, ${merged})`;
}

/** Words joined to an alert name: `Network received` becomes `NetworkReceived`. */
export function alertNameOf(title: string): string {
  const words = title.match(/[\p{L}\p{N}]+/gu) ?? [];
  return words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join("") || "Alert";
}

/** The first error in the form, before the daemon checks the rule; `undefined` without errors. */
export function draftFault({
  name,
  expression,
  value,
  unit,
  lasting,
}: RuleDraft): string | undefined {
  if (name.trim() === "") return "Enter a name.";
  if (expression.trim() === "") return "Enter an expression.";
  const threshold = quantityOf(value, unit);
  if ("fault" in threshold) return threshold.fault;
  const isDuration = /^(\d+(ms|s|m|h|d|w|y))+$/.test(lasting.trim());
  return lasting.trim() === "" || isDuration ? undefined : "Enter the duration as 5m or 1h30m.";
}

/** Adds parentheses if needed: a comparison binds tighter than operators between series. */
function parenthesized(expression: string): string {
  const text = expression.trim();
  return /\b(and|or|unless|bool)\b|[<>=]/i.test(withoutBrackets(text)) ? `(${text})` : text;
}

/** The threshold in PromQL: as typed, or converted from its unit. */
export function thresholdOf({ value, unit }: Pick<RuleDraft, "value" | "unit">): string {
  const text = value.trim();
  const threshold = quantityOf(text, unit);
  return "value" in threshold && !isPlainNumber(text) ? String(threshold.value) : text;
}

export function comparisonText(draft: RuleDraft): string {
  return `${parenthesized(draft.expression)} ${draft.operator} ${thresholdOf(draft)}`;
}

/** A rule file with only this rule, in Prometheus' format. */
export function ruleFile(draft: RuleDraft): string {
  const { name, lasting, severity, summary } = draft;
  const lines = [
    "groups:",
    `- name: ${JSON.stringify(name.trim())}`,
    "  rules:",
    `  - alert: ${JSON.stringify(name.trim())}`,
    `    expr: ${JSON.stringify(comparisonText(draft))}`,
    ...(lasting.trim() === "" ? [] : [`    for: ${lasting.trim()}`]),
    ...(severity === "" ? [] : ["    labels:", `      severity: ${severity}`]),
    ...(summary.trim() === ""
      ? []
      : ["    annotations:", `      summary: ${JSON.stringify(summary.trim())}`]),
  ];
  return `${lines.join("\n")}\n`;
}
