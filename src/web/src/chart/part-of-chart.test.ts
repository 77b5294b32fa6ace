import { expect, it } from "vitest";
import type { ChartAnswer, ChartSeries, Distribution } from "../api/types";
import type { Window } from "../model/timeframe";
import { joinParts } from "./data";
import { partOfChart } from "./part-of-chart";

const window: Window = { start: 0, end: 120_000, resolution: "1m", zone: "UTC" };
const distribution: Distribution = { bounds: [[1, 2]], counts: [[3], []] };

function partOf(
  metric: string,
  displays: ChartSeries["display"][],
  tags = {},
  times = [0, 60_000],
) {
  const series = displays.map((display, k): ChartSeries => {
    const points = times.map((time): [number, number] => [time, k + 1]);
    const number = { metric, tags, kind: "histogram" as const, unit: "seconds", display, points };
    return display === "distribution" ? { ...number, distribution } : number;
  });
  const answer: ChartAnswer = { resolution: "1m", start: 0, end: 120_000, series, notes: [] };
  return partOfChart(answer);
}

it("fills from each percentile to the next lower one of the same series", () => {
  const { series } = partOf("wait", ["p50", "p99.9", "p99"], { host: "a" });
  expect(series.map(({ display, lower }) => [display, lower])).toEqual([
    ["p50", undefined],
    ["p99.9", 'wait{host="a"} p99'],
    ["p99", 'wait{host="a"} p50'],
  ]);
  const [single] = partOf("wait", ["p99"]).series;
  expect(single?.lower).toBeUndefined();
});

it("has the distribution with its percentiles, at the times of the chart", () => {
  const part = partOf("wait", ["distribution", "p50", "p99"]);
  expect(part.series.map(({ display }) => display)).toEqual(["p50", "p99"]);
  const other = partOf("load", ["total"], {}, [0, 60_000, 120_000]);
  const { series } = joinParts([part, other], window);
  expect(series[0]?.distribution).toEqual({ bounds: [[1, 2]], counts: [[3], [], []] });
});

it("counts observations without the unit of their values", () => {
  const { series } = partOf("wait", ["total", "p50"]);
  expect(series.map(({ unit }) => unit.word)).toEqual(["", "seconds"]);
});

it("labels percentiles of several metrics", () => {
  const parts = [partOf("wait", ["p50", "p99"]), partOf("load", ["avg"])];
  expect(joinParts(parts, window).series.map(({ label }) => label)).toEqual([
    "wait p50",
    "wait p99",
    "load avg",
  ]);
});
