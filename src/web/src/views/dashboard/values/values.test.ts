import { describe, expect, it } from "vitest";
import type { ChartData, DrawnSeries } from "../../../chart/data";
import { levelOf, reduceAll, reduced, scaleOf, shareOf } from "./reduce";
import { stateRuns, thresholdsFor } from "./states";

const THRESHOLDS = [
  { level: "good" },
  { from: 80, level: "warn" },
  { from: 90, level: "bad" },
] as const;

const series = (values: (number | null)[], word = ""): DrawnSeries => ({
  key: "a",
  metric: "a",
  tags: {},
  kind: "gauge",
  display: "avg",
  unit: { word, perSecond: false },
  label: "a",
  values,
});

describe("single values", () => {
  it("reduce the complete slots without gaps", () => {
    const values = [4, null, 1, 7, 100];
    const all = (["last", "avg", "min", "max", "sum"] as const).map((r) => reduced(values, 4, r));
    expect(all).toEqual([7, 4, 1, 7, 12]);
    expect(reduced([null], 1, "sum")).toBeUndefined();
  });

  it("have the level of the last threshold that they reach", () => {
    const levels = [10, 80, 89.9, 90, null].map((value) => levelOf(value, [...THRESHOLDS]));
    expect(levels).toEqual(["good", "warn", "warn", "bad", "none"]);
    expect(levelOf(5)).toBe("none");
  });

  it("use the current slot only when it is the only one", () => {
    const data = { times: [0], incompleteFrom: 0, series: [series([95])] } as unknown as ChartData;
    expect(reduceAll(data, { thresholds: [...THRESHOLDS] })[0]).toMatchObject({
      value: 95,
      level: "bad",
    });
  });

  it("have the scale of their unit", () => {
    const found = (word: string, value: number) =>
      [{ series: series([value], word), value, level: "none" }] as const;
    expect(scaleOf(found("percent", 30), {})).toEqual({ min: 0, max: 100 });
    expect(scaleOf(found("ratio", 0.3), {})).toEqual({ min: 0, max: 1 });
    expect(scaleOf(found("", 30), { min: 10, max: 50 })).toEqual({ min: 10, max: 50 });
    expect(scaleOf([], {})).toEqual({ min: 0, max: 1 });
    expect([shareOf(20, { min: 10, max: 50 }), shareOf(99, { min: 0, max: 1 })]).toEqual([0.25, 1]);
  });
});

describe("states over time", () => {
  it("are runs of one level, and gaps end them", () => {
    const runs = stateRuns([0, 10, 20, 30, 40], [50, 85, 88, null, 88], 50, THRESHOLDS);
    expect(runs.map(({ start, end, level }) => [start, end, level])).toEqual([
      [0, 10, "good"],
      [10, 30, "warn"],
      [40, 50, "warn"],
    ]);
  });

  it("of zeros and ones are down and up", () => {
    const up = series([1, 1, 0]);
    const thresholds = thresholdsFor([up], undefined);
    const runs = stateRuns([0, 10, 20], up.values, 30, thresholds);
    expect(runs.map(({ level }) => level)).toEqual(["good", "bad"]);
    expect(thresholdsFor([series([1, 2])], undefined)).toEqual([]);
    expect(stateRuns([0, 10], [1, 2], 20, [])).toHaveLength(2);
  });
});
