/** Arithmetic of two drawn series, as an expression of PromQL. Pure. */
import type { Display, MetricQuery, PanelQuery, PromqlQuery } from "../../api/types";
import type { DrawnSeries } from "../../chart/data";
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

/** The window of rates: two slots of the chart. */
const RATE_WINDOW = "$__rate_interval";

/**
 * The drawn series with an expression that has exactly this series as its result. A series among
 * several of an expression has none, because PromQL does not select in results.
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
  const isOf = (query: PromqlQuery, { key, display }: DrawnSeries) =>
    display === "promql" && key.startsWith(`${query.expression} `);
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
  const query = queries
    .filter((query) => query.kind === "metric")
    .find((query) => !query.hidden && mayDraw(query, line));
  if (!query) return undefined;
  const number = {
    kind: line.kind,
    display: line.display as Display,
    window: RATE_WINDOW,
  };
  const isGrouped = query.merge === true || namesOf(query.group_by).length > 0;
  const tags: Selection = isGrouped
    ? new Map([...selectionOf(query.tags), ...Object.entries(line.tags)])
    : new Map([...otherTags(line, drawn), ...Object.entries(line.tags)]);
  return metricExpression(query, tags, number);
}

/** Returns true if a series can be a result of the query: grouped series have only these tags. */
function mayDraw(query: MetricQuery, { metric, tags }: DrawnSeries): boolean {
  if (query.metric !== metric) return false;
  const names = namesOf(query.group_by);
  const isGrouped = query.merge === true || names.length > 0;
  const selection = selectionOf(query.tags);
  return isGrouped
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
