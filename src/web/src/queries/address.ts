/**
 * Queries in an address: `metric=up&tags=host=a&expression.2=rate(x[5m])`. The first query's
 * parameters have no number, so that a link to one metric can be written by hand.
 */
import type { MetricQuery, PanelQuery, PromqlQuery } from "../api/types";

/** The maximum number of queries of a chart. */
export const QUERIES_MAX = 12;

const NAMES = [
  "metric",
  "tags",
  "group_by",
  "merge",
  "top",
  "bottom",
  "expression",
  "legend",
  "hidden",
] as const;

type Name = (typeof NAMES)[number];

const keyOf = (name: Name, index: number) => (index === 0 ? name : `${name}.${index + 1}`);

/** The parameters of these queries, with `undefined` for parameters to remove. */
export function paramsOf(queries: readonly PanelQuery[]): Record<string, string | undefined> {
  const params: Record<string, string | undefined> = {};
  const complete = queries.filter(isComplete).slice(0, QUERIES_MAX);
  for (let index = 0; index < QUERIES_MAX; index++) {
    const query = complete[index];
    const values = query ? valuesOf(query) : {};
    for (const name of NAMES) params[keyOf(name, index)] = values[name];
  }
  return params;
}

/** Returns true if a query is complete. */
export function isComplete(query: PanelQuery): boolean {
  return (query.kind === "metric" ? query.metric : query.expression).trim() !== "";
}

function valuesOf(query: PanelQuery): Partial<Record<Name, string>> {
  const hidden = query.hidden ? { hidden: "1" } : {};
  if (query.kind === "promql") {
    return { expression: query.expression, ...given("legend", query.legend), ...hidden };
  }
  return {
    metric: query.metric,
    ...given("tags", query.tags),
    ...given("group_by", query.group_by),
    ...(query.merge ? { merge: "1" } : {}),
    ...given("top", query.top?.toString()),
    ...given("bottom", query.bottom?.toString()),
    ...hidden,
  };
}

function given(name: Name, value: string | undefined): Partial<Record<Name, string>> {
  return value ? { [name]: value } : {};
}

/** The queries of an address. */
export function queriesOf(params: URLSearchParams): PanelQuery[] {
  const queries: PanelQuery[] = [];
  for (let index = 0; index < QUERIES_MAX; index++) {
    const valueOf = (name: Name) => params.get(keyOf(name, index)) ?? "";
    const hidden = valueOf("hidden") === "1" ? { hidden: true } : {};
    if (valueOf("expression")) queries.push({ ...promqlOf(valueOf), ...hidden });
    else if (valueOf("metric")) queries.push({ ...metricOf(valueOf), ...hidden });
  }
  return queries;
}

function promqlOf(valueOf: (name: Name) => string): PromqlQuery {
  const legend = valueOf("legend");
  return { kind: "promql", expression: valueOf("expression"), ...(legend ? { legend } : {}) };
}

function metricOf(valueOf: (name: Name) => string): MetricQuery {
  const group_by = valueOf("group_by");
  const top = countOf(valueOf("top"));
  const bottom = countOf(valueOf("bottom"));
  return {
    kind: "metric",
    metric: valueOf("metric"),
    tags: valueOf("tags"),
    ...(group_by ? { group_by } : {}),
    ...(valueOf("merge") === "1" ? { merge: true } : {}),
    ...(top ? { top } : bottom ? { bottom } : {}),
  };
}

/** A number of series from 1 to 1,000. */
export function countOf(text: string): number | undefined {
  const count = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  return count >= 1 && count <= 1000 ? count : undefined;
}

/** The letter of a query: A for the first. */
export function letterOf(index: number): string {
  return String.fromCharCode(65 + index);
}
