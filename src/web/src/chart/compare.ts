/** The same chart of an earlier time as ghost lines: yesterday, or last week. Pure. */
import type { Window } from "../model/timeframe";
import { valueText } from "../model/units";
import { DAY, startOfDay } from "../model/zone";
import type { ChartData, DrawnSeries } from "./data";

export const COMPARISONS = [
  { value: "1d", label: "yesterday", days: 1 },
  { value: "1w", label: "last week", days: 7 },
] as const;

export type Comparison = (typeof COMPARISONS)[number]["value"];

/** More series have no ghost lines, which would hide each other. */
export const GHOSTS_MAX = 10;

function optionOf(comparison: Comparison) {
  return COMPARISONS.find(({ value }) => value === comparison) ?? COMPARISONS[0];
}

/** The window as long before as a comparison names; days follow the clocks of the zone. */
export function earlierWindow(window: Window, comparison: Comparison): Window {
  const { days } = optionOf(comparison);
  const { start, end, resolution, zone } = window;
  const earlier = (instant: number) =>
    resolution === "1d" ? startOfDay(zone, instant, -days) : instant - days * DAY;
  return { ...window, start: earlier(start), end: earlier(end) };
}

/** Adds the earlier values of each series as a ghost line at the times of the chart. */
export function withGhosts(
  data: ChartData,
  earlier: ChartData | undefined,
  comparison: Comparison | undefined,
): ChartData {
  const total = data.series.length + data.rest.length;
  if (!earlier || !comparison || total > GHOSTS_MAX) return data;
  const { label, days } = optionOf(comparison);
  const isByDay = data.resolution === "1d" || data.resolution === "day";
  const indexes = new Map(earlier.times.map((time, k) => [time + days * DAY, k]));
  // A day has 23 to 25 hours, so slots of days are matched by their index.
  const indexAt = (time: number, k: number) => (isByDay ? k : indexes.get(time));
  const byKey = new Map(earlier.series.map((series) => [series.key, series]));
  const ghosts = data.series.flatMap((series): DrawnSeries[] => {
    const past = byKey.get(series.key);
    if (!past) return [];
    const values = data.times.map((time, k) => {
      const index = indexAt(time, k);
      return index === undefined ? null : past.values[index];
    });
    const { band: _, ...line } = series;
    const key = `${series.key} ${comparison}`;
    return [{ ...line, key, label: `${series.label}, ${label}`, ghostOf: series.key, values }];
  });
  return { ...data, series: [...data.series, ...ghosts] };
}

/** `1.2 MiB more than yesterday (+12 %)`: the change of a series from its ghost line at a slot. */
export function changeText(
  data: ChartData,
  series: DrawnSeries | undefined,
  index: number,
  comparison: Comparison | undefined,
): string {
  const key = series?.ghostOf ?? series?.key;
  const current = data.series.find((line) => line.key === key);
  const ghost = data.series.find(({ ghostOf }) => ghostOf !== undefined && ghostOf === key);
  const [now, before] = [current?.values[index], ghost?.values[index]];
  if (!comparison || !current || typeof now !== "number" || typeof before !== "number") return "";
  const { label } = optionOf(comparison);
  if (now === before) return `As ${label}`;
  const size = valueText(Math.abs(now - before), current.unit);
  const share = before === 0 ? "" : ` (${signedPercent((now - before) / Math.abs(before))})`;
  return `${size} ${now > before ? "more" : "less"} than ${label}${share}`;
}

function signedPercent(share: number): string {
  const percent = 100 * share;
  const digits = Math.abs(percent) < 9.95 ? percent.toFixed(1) : percent.toFixed(0);
  return `${percent > 0 ? "+" : ""}${digits.replace("-", "−")} %`;
}
