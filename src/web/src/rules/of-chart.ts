/** The initial rule for a chart. Pure. */
import type { Display, MetricQuery } from "../api/types";
import type { DrawnSeries } from "../chart/data";
import type { ChartSpec } from "../chart/chart-spec";
import type { Unit } from "../model/units";
import { expressionOf, alertNameOf, type RuleDraft } from "./draft";

export interface ChartSource {
  spec: Pick<ChartSpec, "title" | "queries" | "display" | "derive">;
  series: readonly Pick<DrawnSeries, "metric" | "kind" | "display" | "unit">[];
  /** The display of counters in the view's time frame. */
  frameDisplay: Display | undefined;
}

/** An expression to compare, and its unit if known. */
export interface Comparable {
  expression: string;
  unit: Unit | undefined;
}

/** A draft for the chart's first series, and the expressions of all of them. */
export function draftRule({ spec, series, frameDisplay }: ChartSource): {
  draft: RuleDraft;
  expressions: Comparable[];
} {
  const { title, queries, display, derive } = spec;
  // A derived chart does not draw all its metrics, but all have the same kind.
  const drawnSeriesOf = (metric: string) => {
    const lines = series.filter((line) => line.metric === metric);
    // Of several percentiles, alerts are usually about slow requests.
    return lines.find((line) => line.display === "p99") ?? lines[0] ?? (derive && series[0]);
  };
  const expressionFor = (query: MetricQuery) => {
    const drawnSeries = drawnSeriesOf(query.metric);
    const drawnDisplay = drawnSeries?.display as Display | undefined;
    return expressionOf(query, {
      kind: drawnSeries?.kind,
      display: drawnDisplay ?? frameDisplay ?? display,
    });
  };
  const expressions = queries
    .filter(({ hidden }) => !hidden)
    .flatMap((query): Comparable[] => {
      if (query.kind === "promql") {
        return [{ expression: query.expression.trim(), unit: undefined }];
      }
      const { unit } = drawnSeriesOf(query.metric) ?? {};
      if (!derive) return [{ expression: expressionFor(query), unit }];
      const expression = derive.expression(query.metric, (metric) =>
        expressionFor({ ...query, metric }),
      );
      return expression === undefined ? [] : [{ expression, unit }];
    });
  const draft: RuleDraft = {
    name: alertNameOf(title),
    expression: expressions[0]?.expression ?? "",
    unit: expressions[0]?.unit,
    operator: ">",
    value: "",
    lasting: "5m",
    severity: "warning",
    summary: "",
  };
  return { draft, expressions };
}
