import { describe, expect, it } from "vitest";
import type { ChartAnswer, ChartSeries } from "../api/types";
import type { Window } from "../model/timeframe";
import { DRAWN_MAX, joinParts, orderByValue, partOfPromql, withDrawnPart } from "./data";
import { partOfChart } from "./part-of-chart";

const window: Window = { start: 0, end: 180_000, resolution: "1m", zone: "UTC" };

function chartSeries(
  metric: string,
  tags: Record<string, string>,
  display: ChartSeries["display"],
  points: [number, number | null][],
): ChartSeries {
  return { metric, tags, kind: "gauge", unit: "bytes", display, points };
}

function chartAnswer(...series: ChartSeries[]): ChartAnswer {
  return { resolution: "1m", start: 0, end: 180_000, incomplete_from: 120_000, series, notes: [] };
}

describe("an answer", () => {
  it("has its times, with gaps as gaps and zero as zero", () => {
    const single = chartSeries("load", {}, "avg", [
      [0, 0],
      [60_000, null],
      [120_000, 2],
    ]);
    const data = joinParts([partOfChart(chartAnswer(single))], window);
    expect(data.times).toEqual([0, 60_000, 120_000]);
    expect(data.series[0]?.values).toEqual([0, null, 2]);
    expect(data.incompleteFrom).toBe(120_000);
  });

  it("draws min and max as the band of the average, not as lines", () => {
    const all = (["avg", "min", "max"] as const).map((display, k) =>
      chartSeries("load", { host: "a" }, display, [[0, k]]),
    );
    const data = joinParts([partOfChart(chartAnswer(...all))], window);
    expect(data.series).toHaveLength(1);
    expect(data.series[0]?.band).toEqual({ min: [1], max: [2] });
  });

  it("draws max as a line when only max is requested", () => {
    const data = joinParts(
      [partOfChart(chartAnswer(chartSeries("load", {}, "max", [[0, 1]])))],
      window,
    );
    expect(data.series.map(({ display }) => display)).toEqual(["max"]);
  });

  it("draws a readable number of lines, those with the largest values now", () => {
    const all = Array.from({ length: DRAWN_MAX + 5 }, (_, k) =>
      chartSeries("load", { host: `h${k}` }, "avg", [
        [0, 1000 - k],
        [60_000, k],
        // The current slot does not count.
        [120_000, 1000 - k],
      ]),
    );
    const { series, rest } = withDrawnPart(joinParts([partOfChart(chartAnswer(...all))], window));
    expect(series.map(({ label }) => label)).toEqual(
      Array.from({ length: DRAWN_MAX }, (_, k) => `h${k + 5}`),
    );
    expect(rest.map(({ label }) => label)).toEqual(["h0", "h1", "h2", "h3", "h4"]);
  });

  it("orders series by their last values, those without a value last", () => {
    const values: (number | null)[][] = [
      [1, null],
      [null, null],
      [0, 7],
      [9, 2],
    ];
    const all = values.map((pair, k) =>
      chartSeries("load", { host: `h${k}` }, "avg", [
        [0, pair[0] ?? null],
        [60_000, pair[1] ?? null],
      ]),
    );
    const { series, times } = joinParts([partOfChart(chartAnswer(...all))], window);
    expect(orderByValue(series, times, undefined)).toEqual([2, 3, 0, 1]);
  });
});

describe("names of series", () => {
  const labels = (...series: ChartSeries[]) =>
    joinParts([partOfChart(chartAnswer(...series))], window).series.map(({ label }) => label);

  it("contain the differences only", () => {
    const cpuSeries = (host: string, core: string) =>
      chartSeries("cpu", { host, core }, "avg", [[0, 1]]);
    expect(labels(cpuSeries("a", "0"), cpuSeries("a", "1"))).toEqual(["0", "1"]);
    expect(labels(cpuSeries("a", "0"), cpuSeries("b", "1"))).toEqual(["a", "b"]);
    expect(labels(cpuSeries("a", "0"), cpuSeries("a", "1"), cpuSeries("b", "1"))).toEqual([
      "a core=0",
      "a core=1",
      "b core=1",
    ]);
    expect(labels(cpuSeries("a", "0"))).toEqual(["cpu"]);
  });

  it("omit the words with which all metrics begin", () => {
    const seriesNamed = (metric: string) => chartSeries(metric, {}, "avg", [[0, 1]]);
    expect(labels(seriesNamed("system_load_1m"), seriesNamed("system_load_15m"))).toEqual([
      "1m",
      "15m",
    ]);
    expect(labels(seriesNamed("a_b"), seriesNamed("a_b_c"))).toEqual(["b", "b c"]);
    expect(labels(seriesNamed("up"), seriesNamed("down"))).toEqual(["up", "down"]);
  });

  it("contain the requested tags, also when all are equal", () => {
    const single = chartSeries("used", { mount: "/", host: "a" }, "avg", [[0, 1]]);
    expect(joinParts([partOfChart(chartAnswer(single))], window, ["mount"]).series[0]?.label).toBe(
      "/",
    );
  });
});

describe("PromQL", () => {
  const request = {
    expression: "up",
    legend: undefined,
    unit: undefined,
    times: [0, 60_000, 120_000],
  };
  const matrixAnswer = (metric: Record<string, string>, values: [number, string][]) => ({
    resultType: "matrix" as const,
    result: [{ metric, values }],
  });

  it("has gaps where it has no value", () => {
    const part = partOfPromql(
      matrixAnswer({}, [
        [0, "1"],
        [120, "NaN"],
      ]),
      request,
      "1m",
    );
    expect(part.series[0]?.values).toEqual([1, null, null]);
  });

  it("is labelled by its legend", () => {
    const withLegend = { ...request, legend: "of {{ host }} {{none}}" };
    const part = partOfPromql(matrixAnswer({ host: "<b>" }, [[0, "1"]]), withLegend, "1m");
    expect(part.series[0]?.label).toBe("of <b> ");
  });

  it("has no gaps at times that only another query has", () => {
    const slots = partOfChart(
      chartAnswer(
        chartSeries("load", {}, "avg", [
          [0, 1],
          [60_000, null],
        ]),
      ),
    );
    const part = partOfPromql(
      matrixAnswer({}, [
        [0, "5"],
        [60, "6"],
        [120, "7"],
      ]),
      request,
      "1m",
    );
    const data = joinParts([slots, part], window);
    expect(data.times).toEqual([0, 60_000, 120_000]);
    expect(data.series.map(({ values }) => values)).toEqual([
      [1, null, undefined],
      [5, 6, 7],
    ]);
  });

  it("of the same expression twice has two lines", () => {
    const part = partOfPromql(matrixAnswer({}, [[0, "1"]]), request, "1m");
    const keys = joinParts([part, part], window).series.map(({ key }) => key);
    expect(new Set(keys).size).toBe(2);
  });
});
