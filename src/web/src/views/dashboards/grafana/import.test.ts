import { describe, expect, it } from "vitest";
import type { ChartPanel, Panel } from "../../../api/types";
import { overlaps } from "../../dashboard/grid";
import { importGrafana } from "./import";
import { isGrafana } from "./parts";

const target = (expr: string, more: object = {}) => ({ expr, refId: "A", ...more });

function panel(title: string, more: object = {}) {
  const gridPos = { x: 0, y: 0, w: 12, h: 8 };
  return { type: "timeseries", title, gridPos, targets: [target("up")], ...more };
}

const query = (name: string, query: unknown, more: object = {}) => ({
  name,
  type: "query",
  query,
  ...more,
});

function dashboard(panels: unknown[], variables: unknown[] = [], more: object = {}) {
  return { schemaVersion: 41, title: "Own", panels, templating: { list: variables }, ...more };
}

const charts = (panels: readonly Panel[]) =>
  panels.filter((panel): panel is ChartPanel => panel.kind === "chart");

function expressionsOf(source: unknown): string[] {
  return charts(importGrafana(source).dashboard.panels).flatMap(({ queries }) =>
    queries.map((query) => (query.kind === "promql" ? query.expression : "")),
  );
}

describe("importing a dashboard of Grafana", () => {
  it("takes queries, legends, units, stacking and the range", () => {
    const custom = { stacking: { mode: "normal" }, scaleDistribution: { type: "log", log: 2 } };
    const fieldConfig = { defaults: { unit: "Bps", custom } };
    const targets = [
      target("rate(a[1m])", { legendFormat: "{{host}}" }),
      target("b", { legendFormat: "__auto", hide: true }),
    ];
    const source = dashboard([panel("Net", { fieldConfig, targets })], [], {
      time: { from: "now-24h", to: "now" },
    });
    const { dashboard: found, notes } = importGrafana(source);
    expect(notes).toEqual([]);
    expect(found).toEqual({
      schema: 1,
      title: "Own",
      range: "24h",
      variables: [],
      panels: [
        {
          id: "p1",
          kind: "chart",
          title: "Net",
          x: 0,
          y: 0,
          w: 6,
          h: 8,
          stacked: true,
          log: true,
          unit: "bytes/s",
          queries: [
            { kind: "promql", expression: "rate(a[1m])", legend: "{{host}}" },
            { kind: "promql", expression: "b", hidden: true },
          ],
        },
      ],
    });
  });

  it("takes variables of labels, and fills in the others", () => {
    const variables = [
      { name: "ds", type: "datasource", query: "prometheus" },
      query("job", "label_values(job)"),
      query("node", { query: 'label_values(up{job="$job"}, instance)' }, { multi: true }),
      query("first", 'query_result(state{a="b"}==1)', { regex: '/.*name="(.*)",x.*/' }),
      { name: "step", type: "interval", query: "1m,5m" },
      { name: "env", type: "custom", current: { value: ["prod", "test"] } },
      { name: "any", type: "custom", current: { value: "$__all" } },
    ];
    const expr = 'x{i=~"${node:regex}",e="$env",o=~"[[any]]",p!="$any"}[$step]';
    const targets = [target(expr, { legendFormat: "{{i}} of $env" })];
    const source = dashboard([panel("X in $env on $node", { targets })], variables);
    const { dashboard: found, notes } = importGrafana(source);
    expect(found.variables).toEqual([
      { name: "job", tag: "job", multi: false },
      { name: "node", tag: "instance", metric: "up", multi: true },
      { name: "first", tag: "name", metric: "state", multi: false },
    ]);
    expect(expressionsOf(source)).toEqual([
      'x{i=~"${node}",e=~"prod|test",o=~".*",p!~".*"}[$__interval]',
    ]);
    expect(found.panels[0]).toMatchObject({
      title: "X in prod|test on $node",
      queries: [{ legend: "{{i}} of prod|test" }],
    });
    expect(notes).toEqual([
      "Variables list all values of their label: $node, $first",
      "Intervals follow the resolution: $step",
      "Variables without an equivalent have a fixed value: $env = prod|test, $any = all",
    ]);
  });

  it("takes rows above their panels, and places panels without overlaps", () => {
    const at = (x: number, y: number, w: number, h: number) => ({ gridPos: { x, y, w, h } });
    const source = dashboard([
      panel("below", at(0, 30, 24, 9)),
      {
        type: "row",
        title: "Folded",
        collapsed: true,
        ...at(0, 20, 24, 1),
        panels: [panel("in", at(0, 21, 12, 8))],
      },
      ...Array.from({ length: 9 }, (_, k) => panel(`small ${k}`, at(k * 2, 0, 2, 2))),
    ]);
    const { panels } = importGrafana(source).dashboard;
    const titles = panels.map(({ title }) => title);
    expect(titles.slice(-3)).toEqual(["Folded", "in", "below"]);
    expect(panels.at(-3)).toMatchObject({ kind: "row", folded: true, w: 12, h: 1 });
    expect(titles.slice(0, 2)).toEqual(["small 0", "small 1"]);
    for (const a of panels) {
      expect(a.x + a.w).toBeLessThanOrEqual(12);
      for (const b of panels) if (a.id !== b.id) expect(overlaps(a, b)).toBe(false);
    }
  });

  it("takes kinds, numbers, scales, thresholds and repetitions", () => {
    const steps = [
      { color: "green", value: null },
      { color: "#EAB839", value: 80 },
      { color: "rgba(245, 54, 54, 0.9)", value: 90 },
    ];
    const defaults = { min: 0, max: 200, thresholds: { mode: "percentage", steps } };
    const options = { reduceOptions: { calcs: ["mean"] } };
    const line = { custom: { thresholdsStyle: { mode: "line" } }, thresholds: { steps } };
    const panels = [
      panel("Gauge", { type: "gauge", fieldConfig: { defaults }, options }),
      panel("Line", { fieldConfig: { defaults: line }, repeat: "host" }),
      panel("Plain", { fieldConfig: { defaults: { thresholds: { steps } } } }),
      panel("Old", { type: "singlestat", thresholds: "1,2", colorValue: true, valueName: "max" }),
      ...["stat", "bargauge", "table", "heatmap", "state-timeline"].map((type) =>
        panel(type, { type }),
      ),
    ];
    const source = dashboard(panels, [query("host", "label_values(host)")]);
    const { dashboard: found, notes } = importGrafana(source);
    expect(notes).toEqual([]);
    const levels = (from: number[]) => [
      { level: "good" },
      { from: from[0], level: "warn" },
      { from: from[1], level: "bad" },
    ];
    const [gauge, lines, plain, old, ...others] = found.panels;
    expect(gauge).toMatchObject({ kind: "gauge", reduce: "avg", min: 0, max: 200 });
    expect(gauge).toHaveProperty("thresholds", levels([160, 180]));
    expect(lines).toMatchObject({ kind: "chart", repeat: "host", thresholds: levels([80, 90]) });
    expect(plain).not.toHaveProperty("thresholds");
    expect(old).toMatchObject({ kind: "stat", reduce: "max", thresholds: levels([1, 2]) });
    expect(others.map(({ kind }) => kind)).toEqual(["stat", "bars", "table", "heatmap", "states"]);
  });

  it("takes expressions of MetricsQL with a plain meaning", () => {
    const source = dashboard([panel("X", { targets: [target("sum(increase(a), b)")] })]);
    expect(expressionsOf(source)).toEqual(["(sum(increase(a[$__interval])) + sum(b))"]);
  });

  it("names what has no equivalent", () => {
    const panels = [
      panel("Nodes", { type: "nodeGraph" }),
      panel("Loki", { targets: [{ rawSql: "select 1" }] }),
      panel("Each $host", { repeat: "host" }),
      panel("Red", { fieldConfig: { overrides: [{}] }, transformations: [{}] }),
    ];
    const { dashboard: found, notes } = importGrafana(
      dashboard(panels, [], { links: [{ title: "Docs" }], refresh: "5s" }),
    );
    expect(found.panels.map(({ title }) => title)).toEqual(["Nodes", "Each $host", "Red"]);
    expect(notes.sort()).toEqual([
      "Links of the dashboard are left out: Docs",
      "Panels are not repeated by a variable with fixed values: Each $host",
      "Panels of type nodeGraph show lines: Nodes",
      "Panels without a PromQL query are left out: Loki",
      "Queries that are not in PromQL are left out: Loki",
      "Settings of single series (colours, axes, units) are left out: Red",
      "The refresh interval is that of the reader",
      "Transformations are left out: Red",
    ]);
  });

  it("accepts panels of old versions, and anything else without an error", () => {
    const old = {
      schemaVersion: 14,
      rows: [
        {
          title: "Old",
          panels: [{ ...panel("A"), gridPos: undefined, span: 4, yaxes: [{ format: "percent" }] }],
        },
      ],
    };
    const [heading, chart] = importGrafana(old).dashboard.panels;
    expect([heading?.title, heading?.kind]).toEqual(["Old", "row"]);
    expect(chart).toMatchObject({ title: "A", w: 6, unit: "percent" });
    for (const odd of [null, 1, [], { panels: 5, templating: "x" }, { panels: [null, 7, "x"] }]) {
      expect(importGrafana(odd).dashboard.schema).toBe(1);
    }
  });

  it("recognizes Grafana's dashboards, also from its API", () => {
    expect(isGrafana(dashboard([]))).toBe(true);
    expect(isGrafana({ dashboard: dashboard([]), meta: {} })).toBe(true);
    expect(isGrafana({ schema: 1, title: "", variables: [], panels: [] })).toBe(false);
    expect(isGrafana({ name: "a", dashboard: { schema: 1, panels: [] } })).toBe(false);
    expect(isGrafana("x")).toBe(false);
  });
});
