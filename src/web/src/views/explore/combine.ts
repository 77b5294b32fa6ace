/** Arithmetic of two drawn series, as an expression of PromQL. Pure. */
import type { Display, Kind, MetricQuery, PanelQuery, PromqlQuery } from "../../api/types";
import { seriesName, type DrawnSeries } from "../../chart/data";
import { namesOf, selectionOf, type Selection } from "../../queries/tags";
import { metricExpression } from "../../rules/draft";

export const OPERATIONS = [
  { operator: "/", sign: "÷", label: "Ratio" },
  { operator: "-", sign: "−", label: "Difference" },
  { operator: "+", sign: "+", label: "Sum" },
] as const;

export type Operation = (typeof OPERATIONS)[number];

/** A drawn series that can be combined, with its expression. */
export interface Operand {
  key: string;
  label: string;
  expression: string;
}

/** The window of rates is two slots of the chart; a total has the observations of one slot. */
const RATE_WINDOW = "$__rate_interval";
const SLOT_WINDOW = "$__interval";

/** The displays that an expression has, too, beside percentiles of histograms. */
const WRITABLE: Partial<Record<Kind, readonly string[]>> = {
  gauge: ["avg", "avg_per_sec"],
  counter: ["avg_per_sec", "sum_per_sec", "total"],
  delta: ["avg_per_sec", "total"],
  histogram: ["avg_per_sec", "total"],
  deltahistogram: ["avg_per_sec", "total"],
  gaugehistogram: ["total"],
};

/**
 * The drawn series with an expression that has exactly this series as its result. A series among
 * several of an expression has none, because PromQL does not select in results; nor has one whose
 * query is not certain, or whose display an expression lacks.
 */
export function operandsOf(
  series: readonly DrawnSeries[],
  queries: readonly PanelQuery[],
): Operand[] {
  const drawn = series.filter(({ ghostOf }) => ghostOf === undefined);
  return drawn.flatMap((line): Operand[] => {
    const expression =
      line.display === "promql"
        ? expressionOfResult(line, drawn, queries)
        : expressionOfSeries(line, drawn, queries);
    return expression === undefined ? [] : [{ key: line.key, label: line.label, expression }];
  });
}

function expressionOfResult(
  line: DrawnSeries,
  drawn: readonly DrawnSeries[],
  queries: readonly PanelQuery[],
): string | undefined {
  const isOf = ({ expression }: PromqlQuery, { key, display, metric, tags }: DrawnSeries) =>
    display === "promql" && key === `${expression} ${seriesName(metric, tags)}`;
  const query = queries
    .filter((query) => query.kind === "promql")
    .find((query) => !query.hidden && isOf(query, line));
  if (!query || drawn.filter((other) => isOf(query, other)).length > 1) return undefined;
  return query.expression.trim();
}

function expressionOfSeries(
  line: DrawnSeries,
  drawn: readonly DrawnSeries[],
  queries: readonly PanelQuery[],
): string | undefined {
  const fitting = queries
    .filter((query) => query.kind === "metric")
    .filter((query) => !query.hidden && mayDraw(query, line));
  const [query] = fitting;
  if (!query || !isWritable(line)) return undefined;
  // A grouped line does not tell which series are merged in it.
  if (fitting.length > 1 && fitting.some(isGrouped)) return undefined;
  const number = {
    kind: line.kind,
    display: line.display as Display,
    window: line.display.endsWith("_per_sec") ? RATE_WINDOW : SLOT_WINDOW,
  };
  const tags: Selection = isGrouped(query)
    ? new Map([...selectionOf(query.tags), ...Object.entries(line.tags)])
    : new Map([...otherTags(line, drawn), ...Object.entries(line.tags)]);
  return metricExpression(query, tags, number);
}

function isWritable({ kind, display }: DrawnSeries): boolean {
  if (!kind) return false;
  const isPercentile = kind.endsWith("histogram") && /^p\d/.test(display);
  return isPercentile || (WRITABLE[kind]?.includes(display) ?? false);
}

const isGrouped = ({ merge, group_by }: MetricQuery) =>
  merge === true || namesOf(group_by).length > 0;

/** Returns true if a series can be a result of the query: grouped series have only these tags. */
function mayDraw(query: MetricQuery, { metric, tags }: DrawnSeries): boolean {
  if (query.metric !== metric) return false;
  const names = namesOf(query.group_by);
  const selection = selectionOf(query.tags);
  return isGrouped(query)
    ? Object.keys(tags).every((name) => names.includes(name))
    : [...selection].every(([name, value]) => tags[name] === value);
}

/** Tags that the series lacks and others of its metric have: without them, those match as well. */
function otherTags(line: DrawnSeries, drawn: readonly DrawnSeries[]): [string, string][] {
  const names = drawn
    .filter(({ metric }) => metric === line.metric)
    .flatMap(({ tags }) => Object.keys(tags));
  return [...new Set(names)].filter((name) => !(name in line.tags)).map((name) => [name, ""]);
}

/** The query for a combination; both operands have one series, so no labels are matched. */
export function combinedQuery(a: Operand, operation: Operation, b: Operand): PromqlQuery {
  return {
    kind: "promql",
    expression: `(${a.expression}) ${operation.operator} on() (${b.expression})`,
    // Braces in a name are not tags to fill in.
    legend: `${a.label} ${operation.sign} ${b.label}`.replaceAll(/\{\{|\}\}/g, ""),
  };
}
