/** The rule to begin with, of what a chart shows. Pure. */
import type { Display, MetricQuery } from "../api/types";
import type { DrawnSeries } from "../chart/data";
import type { ChartWish } from "../chart/wish";
import { expressionOf, nameOfAlert, type RuleDraft } from "./draft";

export interface Shown {
  wish: Pick<ChartWish, "title" | "queries" | "display" | "derive">;
  series: readonly Pick<DrawnSeries, "metric" | "kind" | "display">[];
  /** What the view's time frame asks for of counters. */
  frameDisplay: Display | undefined;
}

/** A draft of the first thing that the chart shows, and the expressions of all of them. */
export function ruleOf({ wish, series, frameDisplay }: Shown): {
  draft: RuleDraft;
  expressions: string[];
} {
  const { title, queries, display, derive } = wish;
  const of = (query: MetricQuery) => {
    // What is made of several metrics is not drawn for each, but all are of one kind.
    const drawn = series.find(({ metric }) => metric === query.metric) ?? (derive && series[0]);
    const known = drawn?.display as Display | undefined;
    return expressionOf(query, { kind: drawn?.kind, display: known ?? frameDisplay ?? display });
  };
  const expressions = queries
    .filter(({ hidden }) => !hidden)
    .flatMap((query) => {
      if (query.kind === "promql") return [query.expression.trim()];
      const derived = derive?.expression(query.metric, (metric) => of({ ...query, metric }));
      return derive ? (derived ?? []) : [of(query)];
    });
  const draft: RuleDraft = {
    name: nameOfAlert(title),
    expression: expressions[0] ?? "",
    operator: ">",
    value: "",
    lasting: "5m",
    severity: "warning",
    summary: "",
  };
  return { draft, expressions };
}
