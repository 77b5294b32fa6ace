import { expect, it } from "vitest";
import type { ChartData, DrawnSeries } from "../../chart/data";
import { DAY } from "../../model/zone";
import { forecastChart, forecastChoice, withForecastAt } from "./forecast-chart";

const BYTES = { word: "bytes", perSecond: false };
const until = (median: number) => ({
  host: "a",
  mount: "/",
  early: undefined,
  median,
  late: undefined,
});

function line(display: string, values: DrawnSeries["values"]): DrawnSeries {
  const metric = display === "promql" ? "" : "free";
  const unit = display === "promql" ? { word: "", perSecond: false } : BYTES;
  const key = `${metric} ${values.join()}`;
  return { key, metric, tags: {}, kind: undefined, display, unit, label: "", values };
}

function dataOf(...series: DrawnSeries[]): ChartData {
  return {
    window: { start: 0, end: 4, resolution: "1d", zone: "UTC" },
    times: [0, 1, 2, 3],
    series,
    resolution: "1d",
    isCoarse: false,
    incompleteFrom: 1,
    notes: [],
    rest: [],
  };
}

it("draws the forecast from the last value on, never below zero", () => {
  const data = dataOf(
    line("first", [9, 7, null, null]),
    line("promql", [8, 6, 2, -2]),
    line("promql", [9, 7, 4, 1]),
    line("promql", [10, 8, 6, 4]),
  );
  const { series, incompleteFrom, restingAt } = withForecastAt(1.5, "free").series(data);
  expect(series.map(({ label, values }) => [label, values])).toEqual([
    ["free", [9, 7, null, null]],
    ["forecast", [null, 7, 4, 1]],
  ]);
  const [free, forecast] = series;
  expect(forecast?.band).toEqual({ min: [null, 7, 2, 0], max: [null, 7, 6, 4] });
  expect(forecast?.unit).toEqual(BYTES);
  expect(forecast?.ghostOf).toBe(free?.key);
  expect(incompleteFrom).toBeUndefined();
  expect(restingAt).toBe(1.5);
});

it("draws the values alone when a quantile is missing", () => {
  const data = dataOf(line("first", [9, 7, null, null]), line("promql", [8, 6, 2, -2]));
  expect(withForecastAt(1.5, "free").series(data)).toBe(data);
});

it("shows as much time ahead as behind, in slots that are fine enough", () => {
  const at = 100 * DAY;
  const far = forecastChoice(until(9 * DAY), at, "UTC");
  expect([far.resolution, far.fixed]).toEqual(["1d", { start: 79 * DAY, end: 121 * DAY }]);
  const near = forecastChoice(until(DAY), at, "UTC");
  expect([near.resolution, near.fixed]).toEqual(["1h", { start: 97 * DAY, end: 103 * DAY }]);
});

it("asks for the forecast of one moment, with quoted names", () => {
  const { queries } = forecastChart('a"b', until(DAY), 5000);
  const [, low] = queries;
  expect(low).toEqual({
    kind: "promql",
    expression: 'forecast(disk_partition_space_free{host="a\\"b", mount="/"}[21d] @ 5, 0, 0.1)',
  });
});
