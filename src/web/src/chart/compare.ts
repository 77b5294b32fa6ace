/**
 * The same chart of another time as ghost lines, or the difference from it: yesterday, last week,
 * or the time before a release, which is an annotation. Pure.
 */
import { floorSlot, slotStarts, type Window } from "../model/timeframe";
import { valueText } from "../model/units";
import { DAY, clockAt, dayText, startOfDay, timeText } from "../model/zone";
import type { ChartData, DrawnSeries } from "./data";

export const COMPARISONS = [
  { value: "1d", label: "yesterday", days: 1 },
  { value: "1w", label: "last week", days: 7 },
] as const;

/** A length of time, or a release with its time in Unix milliseconds. */
export type Comparison = (typeof COMPARISONS)[number]["value"] | `@${number}`;

/** More series have no ghost lines, which would hide each other. */
export const GHOSTS_MAX = 10;

/** The comparison in a parameter of the address. */
export function readComparison(text: string | null): Comparison | undefined {
  const known = COMPARISONS.find(({ value }) => value === text)?.value;
  return known ?? (/^@\d{1,15}$/.test(text ?? "") ? (text as Comparison) : undefined);
}

export const comparisonWith = (release: number): Comparison => `@${release}`;

function releaseOf(comparison: Comparison): number | undefined {
  return comparison.startsWith("@") ? Number(comparison.slice(1)) : undefined;
}

function daysOf(comparison: Comparison): number {
  return COMPARISONS.find(({ value }) => value === comparison)?.days ?? 0;
}

/** The name of the other time: `yesterday`, `before 14:05`, or with its date on another day. */
export function comparisonLabel(comparison: Comparison, { start, end, zone }: Window): string {
  const release = releaseOf(comparison);
  if (release === undefined)
    return COMPARISONS.find(({ value }) => value === comparison)?.label ?? "";
  const clock = clockAt(zone, release);
  const [day, lastDay] = [dayText(clock), dayText(clockAt(zone, end))];
  const text = day === lastDay ? timeText(clock) : `${day} ${timeText(clock)}`;
  return release < start ? `from ${text} on` : `before ${text}`;
}

/** The other window, and the time of the chart at which its first slot is drawn. */
interface Alignment {
  earlier: Window;
  from: number;
}

/**
 * Aligns the other time with a window. Days follow the clocks of the zone. A release in the window
 * separates it: the same length before the release is drawn after it. When the window is after the
 * release, the time from the release on is drawn from the start of the window.
 */
function alignmentOf(window: Window, comparison: Comparison): Alignment | undefined {
  const { start, end, resolution, zone } = window;
  const isByDay = resolution === "1d";
  const release = releaseOf(comparison);
  if (release === undefined) {
    const days = daysOf(comparison);
    const earlier = (instant: number) =>
      isByDay ? startOfDay(zone, instant, -days) : instant - days * DAY;
    return { earlier: { ...window, start: earlier(start), end: earlier(end) }, from: start };
  }
  const first = floorSlot(resolution, zone, release);
  if (first >= end) return undefined;
  const isBefore = first < start;
  const from = isBefore ? start : first;
  const days = isByDay ? slotStarts({ ...window, start: from }).length : 0;
  const moved = (instant: number, sign: 1 | -1) =>
    isByDay ? startOfDay(zone, instant, sign * days) : instant + sign * (end - from);
  const earlier = isBefore
    ? { ...window, start: first, end: moved(first, 1) }
    : { ...window, start: moved(first, -1), end: first };
  return { earlier, from };
}

/** The window of the other time; `undefined` when the release is after the window. */
export function earlierWindow(window: Window, comparison: Comparison): Window | undefined {
  return alignmentOf(window, comparison)?.earlier;
}

/** Adds the values of the other time as ghost lines at the times of the chart. */
export function withGhosts(
  data: ChartData,
  earlier: ChartData | undefined,
  comparison: Comparison | undefined,
): ChartData {
  const alignment = comparison && alignmentOf(data.window, comparison);
  if (!earlier || !comparison || !alignment) return data;
  // Cells have no earlier cells to compare with.
  if (data.series.some(({ distribution }) => distribution)) return data;
  const total = data.series.length + data.rest.length;
  if (total > GHOSTS_MAX) {
    const note = `more than ${GHOSTS_MAX} series are not compared: filter by tags`;
    return { ...data, notes: [...data.notes, note] };
  }
  const label = comparisonLabel(comparison, data.window);
  const indexAt = indexesIn(data, earlier, alignment);
  const byKey = new Map(earlier.series.map((series) => [series.key, series]));
  const ghosts = data.series.flatMap((series): DrawnSeries[] => {
    const past = byKey.get(series.key);
    if (!past) return [];
    const values = data.times.map((time, k) => {
      const index = indexAt(time, k);
      return index === undefined ? null : past.values[index];
    });
    const { band: _, lower: _lower, ...line } = series;
    const key = `${series.key} ${comparison}`;
    return [{ ...line, key, label: `${series.label}, ${label}`, ghostOf: series.key, values }];
  });
  return { ...data, series: [...data.series, ...ghosts] };
}

/** The index of the other time for each time of the chart. */
function indexesIn(data: ChartData, earlier: ChartData, { from, earlier: window }: Alignment) {
  if (data.resolution === "1d" || data.resolution === "day") {
    // A day has 23 to 25 hours, so slots of days are matched by their index.
    const first = data.times.findIndex((time) => time >= from);
    return (_: number, k: number) => (k >= first && first >= 0 ? k - first : undefined);
  }
  const shift = from - window.start;
  const indexes = new Map(earlier.times.map((time, k) => [time + shift, k]));
  return (time: number) => (time < from ? undefined : indexes.get(time));
}

/** Replaces the lines and their ghosts by the values now minus those of the other time. */
export function withDifference(data: ChartData, comparison: Comparison | undefined): ChartData {
  const ghosts = new Map(data.series.map((series) => [series.ghostOf, series]));
  if (!comparison || data.series.every(({ ghostOf }) => ghostOf === undefined)) return data;
  const label = comparisonLabel(comparison, data.window);
  const series = data.series.flatMap(({ band: _, ...line }): DrawnSeries[] => {
    const ghost = line.ghostOf === undefined ? ghosts.get(line.key) : undefined;
    if (!ghost) return [];
    const values = line.values.map((value, k) => {
      const before = ghost.values[k];
      return typeof value === "number" && typeof before === "number" ? value - before : null;
    });
    const key = `${line.key} minus ${comparison}`;
    return [{ ...line, key, label: `${line.label}, minus ${label}`, values }];
  });
  return { ...data, series };
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
  const label = comparisonLabel(comparison, data.window);
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
