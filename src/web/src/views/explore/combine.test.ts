import { expect, it } from "vitest";
import type { PanelQuery } from "../../api/types";
import type { DrawnSeries } from "../../chart/data";
import { combinedQuery, OPERATIONS, operandsOf } from "./combine";

function line(metric: string, tags: Record<string, string>, changes: Partial<DrawnSeries> = {}) {
  const unit = { word: "", perSecond: false };
  return {
    ...{ key: `${metric} ${JSON.stringify(tags)}`, metric, tags, kind: "gauge" as const },
    ...{ display: "avg", unit, label: metric, values: [], ...changes },
  };
}

const metric = (name: string, changes = {}): PanelQuery => ({
  ...{ kind: "metric", metric: name, tags: "", ...changes },
});

const expressions = (series: DrawnSeries[], ...queries: PanelQuery[]) =>
  operandsOf(series, queries).map(({ expression }) => expression);

it("selects exactly one series, also when another one has more tags", () => {
  const series = [line("used", { host: "a" }), line("used", { host: "a", mount: "/" })];
  expect(expressions(series, metric("used"))).toEqual([
    'used{mount="",host="a"}',
    'used{host="a",mount="/"}',
  ]);
});

it("has the rate of a counter over two slots, and the group of a grouped query", () => {
  const counter = { kind: "counter" as const, display: "avg_per_sec" };
  expect(
    expressions(
      [line("requests", { host: "a" }, counter)],
      metric("requests", { group_by: "host", tags: "dc=fra" }),
    ),
  ).toEqual(['sum by (host) (rate(requests{dc="fra",host="a"}[$__rate_interval]))']);
  expect(expressions([line("requests", {}, counter)], metric("requests", { merge: true }))).toEqual(
    ["sum(rate(requests[$__rate_interval]))"],
  );
});

it("has totals and percentiles of one slot", () => {
  for (const [kind, display, expected] of [
    ["counter", "total", 'increase(m{host="a"}[$__interval])'],
    ["delta", "total", 'increase(m{host="a"}[$__interval])'],
    ["histogram", "total", 'histogram_count(increase(m{host="a"}[$__interval]))'],
    ["histogram", "avg_per_sec", 'histogram_count(rate(m{host="a"}[$__rate_interval]))'],
    ["gaugehistogram", "total", 'histogram_count(sum_over_time(m{host="a"}[$__interval]))'],
    ["histogram", "p90", 'histogram_quantile(0.9, increase(m{host="a"}[$__interval]))'],
  ] as const)
    expect(expressions([line("m", { host: "a" }, { kind, display })], metric("m"))).toEqual([
      expected,
    ]);
});

it("offers no lines whose display an expression lacks", () => {
  for (const [kind, display] of [
    ["gauge", "max"],
    ["gauge", "min"],
    ["gauge", "count"],
    ["gauge", "total"],
    ["counter", "max"],
    ["histogram", "avg"],
    ["gaugehistogram", "avg_per_sec"],
  ] as const)
    expect(expressions([line("m", {}, { kind, display })], metric("m")), display).toEqual([]);
});

it("offers a grouped line only when one query fits", () => {
  const merged = [line("used", {}), line("used", {}, { key: "used #2" })];
  const a = metric("used", { merge: true, tags: "host=a" });
  const b = metric("used", { merge: true, tags: "host=b" });
  expect(expressions(merged, a, b)).toEqual([]);
  expect(expressions(merged.slice(0, 1), a, { ...b, hidden: true })).toEqual([
    'avg(used{host="a"})',
  ]);
});

it("offers no ghost lines, hidden queries and one of several results", () => {
  const promql = { display: "promql", kind: undefined };
  const results = [
    line("", { host: "a" }, { ...promql, key: 'up {host="a"}' }),
    line("", { host: "b" }, { ...promql, key: 'up {host="b"}' }),
    line("", {}, { ...promql, key: "sum(up) " }),
  ];
  const queries: PanelQuery[] = [
    { kind: "promql", expression: "up" },
    { kind: "promql", expression: "sum(up)" },
  ];
  expect(expressions(results, ...queries)).toEqual(["sum(up)"]);
  // The expression of the line begins with another one.
  const half = line("", {}, { ...promql, key: "sum(up) / 2 " });
  const both: PanelQuery[] = [...queries, { kind: "promql", expression: "sum(up) / 2" }];
  expect(expressions([half], ...both)).toEqual(["sum(up) / 2"]);
  expect(expressions([line("used", {}, { ghostOf: "x" })], metric("used"))).toEqual([]);
  expect(expressions([line("used", {})], metric("used", { hidden: true }))).toEqual([]);
});

it("combines two series without matching their tags", () => {
  const [a, b] = operandsOf(
    [line("used", { host: "a" }), line("total", { host: "a" })],
    [metric("used"), metric("total")],
  );
  const [ratio] = OPERATIONS;
  if (!a || !b) throw new Error("two operands are expected");
  expect(combinedQuery(a, ratio, b)).toEqual({
    kind: "promql",
    expression: '(used{host="a"}) / on() (total{host="a"})',
    legend: "used ÷ total",
  });
});
