import { expect, it } from "vitest";
import { DAY, HOUR, MINUTE } from "../model/zone";
import {
  changeText,
  comparisonLabel,
  earlierWindow,
  readComparison,
  withDifference,
  withGhosts,
} from "./compare";
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
  const { end } = earlierWindow({ ...days, resolution: "1d" }, "1d") ?? {};
  // The clocks changed on this day, which has 23 hours.
  expect(new Date(end ?? 0).toISOString()).toBe("2026-03-28T23:00:00.000Z");
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
  expect(withGhosts(data, chart(NOW - DAY, ...many), "1d")).toEqual({
    ...data,
    notes: ["more than 10 series are not compared: filter by tags"],
  });
  expect(withGhosts(data, undefined, "1d")).toBe(data);
});

it("does not compare cells of histograms, and keeps them", () => {
  const distribution = { bounds: [[1, 2] as [number, number]], counts: [[1], [2], [3]] };
  const now = chart(NOW, { ...line("a", [1, 2, 3]), distribution });
  const before = chart(NOW - DAY, line("a", [1, 2, 3]));
  expect(withDifference(withGhosts(now, before, "1d"), "1d")).toEqual(now);
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

const window = (start: number, end: number) =>
  ({ start, end, resolution: "1m", zone: "UTC" }) as const;

it("draws the same length before a release after it", () => {
  const release = "@1774785780000";
  const at = NOW + 3 * MINUTE + 20_000;
  expect(readComparison(`@${at}`)).toBe(`@${at}`);
  expect(readComparison(release)).toBe(release);
  expect(readComparison("@x")).toBeUndefined();
  // Three slots before the release, and two after it.
  const shown = window(NOW, NOW + 5 * MINUTE);
  const comparison = `@${at}` as const;
  expect(earlierWindow(shown, comparison)).toEqual(window(NOW + MINUTE, NOW + 3 * MINUTE));
  expect(comparisonLabel(comparison, shown)).toBe("before 12:03");
  const times = [0, 1, 2, 3, 4].map((k) => NOW + k * MINUTE);
  const data = { ...chart(NOW, line("a", [1, 2, 3, 10, 20])), window: shown, times };
  const before = { ...chart(NOW + MINUTE, line("a", [2, 3])), times: times.slice(1, 3) };
  const ghosts = withGhosts(data, before, comparison);
  expect(ghosts.series[1]?.values).toEqual([null, null, null, 2, 3]);
  const difference = withDifference(ghosts, comparison);
  expect(difference.series.map(({ label, values }) => [label, values])).toEqual([
    ["a, minus before 12:03", [null, null, null, 8, 17]],
  ]);
});

it("draws the time from an earlier release on from the start of the window", () => {
  const comparison = `@${NOW}` as const;
  const shown = window(NOW + HOUR, NOW + HOUR + 3 * MINUTE);
  expect(earlierWindow(shown, comparison)).toEqual(window(NOW, NOW + 3 * MINUTE));
  expect(comparisonLabel(comparison, shown)).toBe("from 12:00 on");
  expect(comparisonLabel(comparison, window(NOW, NOW + DAY))).toBe("before 29 Mar 12:00");
  const data = chart(NOW + HOUR, line("a", [5, 6, 7]));
  const { series } = withGhosts(data, chart(NOW, line("a", [1, 2, 3])), comparison);
  expect(series[1]?.values).toEqual([1, 2, 3]);
  expect(earlierWindow(shown, `@${NOW + DAY}`)).toBeUndefined();
});

it("aligns days with a release by their number", () => {
  const zone = "Europe/Berlin";
  const day = (text: string) => Date.parse(`${text}T00:00:00+01:00`);
  const summer = (text: string) => Date.parse(`${text}T00:00:00+02:00`);
  const shown = { start: day("2026-03-27"), end: summer("2026-03-31"), resolution: "1d", zone };
  const release = summer("2026-03-30") + 3 * HOUR;
  const earlier = earlierWindow({ ...shown, resolution: "1d" }, `@${release}`);
  // One day after the release, on which the clocks had changed the day before.
  expect(earlier).toMatchObject({ start: day("2026-03-29"), end: summer("2026-03-30") });
});

it("has no difference without an earlier value", () => {
  const data = withGhosts(
    chart(NOW, line("a", [12, null, 3]), line("new", [1, 1, 1])),
    chart(NOW - DAY, line("a", [10, 5, null])),
    "1d",
  );
  const { series } = withDifference(data, "1d");
  expect(series.map(({ key, values }) => [key, values])).toEqual([["a minus 1d", [2, null, null]]]);
  expect(withDifference(chart(NOW, line("a", [1, 1, 1])), "1d").series).toHaveLength(1);
});
