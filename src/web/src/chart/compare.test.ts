import { expect, it } from "vitest";
import { DAY, HOUR, MINUTE } from "../model/zone";
import { changeText, earlierWindow, withGhosts } from "./compare";
import type { ChartData, DrawnSeries } from "./data";

const NOW = Date.parse("2026-03-29T12:00:00Z");

function line(key: string, values: (number | null)[]): DrawnSeries {
  const unit = { word: "", perSecond: false };
  return { key, metric: "m", tags: {}, kind: "gauge", display: "avg", unit, label: key, values };
}

function chart(start: number, ...series: DrawnSeries[]): ChartData {
  const window = { start, end: start + 3 * MINUTE, resolution: "1m" as const, zone: "UTC" };
  const times = [0, 1, 2].map((k) => start + k * MINUTE);
  const answer = { window, times, resolution: "1m", isCoarse: false, incompleteFrom: undefined };
  return { ...answer, series, notes: [], rest: [] };
}

it("is of the window a day or a week before, by the days of the zone", () => {
  const window = { start: NOW - HOUR, end: NOW, resolution: "1m" as const, zone: "Europe/Berlin" };
  expect(earlierWindow(window, "1w")).toMatchObject({ start: NOW - HOUR - 7 * DAY });
  const days = { ...window, start: NOW - 3 * DAY, end: Date.parse("2026-03-29T22:00:00Z") };
  const { end } = earlierWindow({ ...days, resolution: "1d" }, "1d");
  // The clocks changed on this day, which has 23 hours.
  expect(new Date(end).toISOString()).toBe("2026-03-28T23:00:00.000Z");
});

it("draws the earlier values at the times of the chart", () => {
  const before = chart(NOW - DAY - MINUTE, line("a", [1, 2, 3]), line("gone", [9, 9, 9]));
  const { series } = withGhosts(
    chart(NOW, line("a", [5, 6, 7]), line("b", [0, 0, 0])),
    before,
    "1d",
  );
  expect(series.map(({ key, label, ghostOf }) => [key, label, ghostOf])).toEqual([
    ["a", "a", undefined],
    ["b", "b", undefined],
    ["a 1d", "a, yesterday", "a"],
  ]);
  expect(series[2]?.values).toEqual([2, 3, null]);
});

it("is left out for many series, and without earlier values", () => {
  const many = Array.from({ length: 11 }, (_, k) => line(`s${k}`, [1, 1, 1]));
  const data = chart(NOW, ...many);
  expect(withGhosts(data, chart(NOW - DAY, ...many), "1d")).toBe(data);
  expect(withGhosts(data, undefined, "1d")).toBe(data);
});

it("names the change", () => {
  const data = withGhosts(
    chart(NOW, line("a", [12, 5, 0])),
    chart(NOW - DAY, line("a", [10, 5, 0.5])),
    "1d",
  );
  const textAt = (index: number) => changeText(data, data.series[1], index, "1d");
  expect([0, 1, 2].map(textAt)).toEqual([
    "2 more than yesterday (+20 %)",
    "As yesterday",
    "0.5 less than yesterday (−100 %)",
  ]);
  expect(changeText(chart(NOW, line("a", [1, 1, 1])), undefined, 0, "1d")).toBe("");
});
