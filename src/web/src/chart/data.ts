/** A chart's data: series over common times, made from the daemon's answers. */
import type { Distribution, Kind, PromqlMatrix, Tags } from "../api/types";
import type { Values } from "../model/stack";
import type { Window } from "../model/timeframe";
import { unitOf, type Unit } from "../model/units";
import { labelsOf } from "./labels";
import { completeCount } from "./open-slot";

export interface DrawnSeries {
  /** The identity of series and number, stable between answers. */
  key: string;
  metric: string;
  tags: Tags;
  kind: Kind | undefined;
  /** The number's kind; `promql` for expressions. */
  display: string;
  unit: Unit;
  label: string;
  values: Values;
  /** The key of the series of which a ghost line shows earlier values. */
  ghostOf?: string;
  /** Min and max of each slot. */
  band?: { min: Values; max: Values };
  /** The key of the next lower percentile: the area down to its line is filled. */
  lower?: string;
  /** The histograms of its query: the cells of a heat map. */
  distribution?: Distribution;
}

export interface ChartData {
  /** The requested window. */
  window: Window;
  /** Slot starts. */
  times: number[];
  series: DrawnSeries[];
  /** The slots of the answer; wider than requested while finer ones load. */
  resolution: string;
  isCoarse: boolean;
  /** Start of the current slot. */
  incompleteFrom: number | undefined;
  /** The time whose values are shown without a pointer; the last complete slot by default. */
  restingAt?: number;
  /** The daemon's notes on the answer. */
  notes: string[];
  /** The series beyond the maximum number of lines. */
  rest: DrawnSeries[];
}

/** A query that failed. */
export interface Failure {
  /** The index of the query among those of the chart. */
  index: number;
  message: string;
}

/** An answer to one query. */
export interface Part {
  times: number[];
  series: DrawnSeries[];
  resolution: string;
  incompleteFrom: number | undefined;
  notes: string[];
}

/** More lines are unreadable and slow. */
export const DRAWN_MAX = 100;

/** `metric{a="b"}` */
export function seriesName(metric: string, tags: Tags): string {
  const pairs = Object.entries(tags).sort(([a], [b]) => (a < b ? -1 : 1));
  const inside = pairs.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", ");
  return inside ? `${metric}{${inside}}` : metric;
}

export interface PromqlRequest {
  expression: string;
  legend: string | undefined;
  unit: string | undefined;
  /** The evaluation times. */
  times: number[];
}

/** Converts an answer of `/api/v1/query_range` to values at the requested times. */
export function partOfPromql(
  matrix: PromqlMatrix,
  request: PromqlRequest,
  resolution: string,
): Part {
  const indices = new Map(request.times.map((time, index) => [time, index]));
  const series = matrix.result.map(({ metric, values = [] }) => {
    const { __name__: name, ...tags } = metric;
    const isNameless = name === undefined && Object.keys(tags).length === 0;
    const drawnValues: Values = request.times.map(() => null);
    for (const [seconds, text] of values) {
      const index = indices.get(Math.round(seconds * 1000));
      const value = numberOf(text);
      if (index !== undefined && Number.isFinite(value)) drawnValues[index] = value;
    }
    return {
      key: `${request.expression} ${seriesName(name ?? "", tags)}`,
      metric: name ?? "",
      tags,
      kind: undefined,
      display: "promql",
      unit: unitOf(request.unit ?? "", ""),
      label: request.legend
        ? fillLegend(request.legend, metric)
        : isNameless
          ? request.expression
          : "",
      values: drawnValues,
    };
  });
  const count = matrix.result.filter(({ histograms }) => histograms?.length).length;
  const notes =
    count > 0 ? [`${count} series have native histograms: draw them with histogram_quantile`] : [];
  return { times: request.times, series, resolution, incompleteFrom: undefined, notes };
}

function numberOf(text: string): number {
  if (text === "+Inf") return Infinity;
  return text === "-Inf" ? -Infinity : Number(text);
}

/** Replaces `{{tag}}` with that tag's value. */
function fillLegend(legend: string, tags: Tags): string {
  return legend.replaceAll(/\{\{\s*([^{}\s]+)\s*\}\}/g, (_, name: string) => tags[name] ?? "");
}

/** Aligns all parts to common times. `undefined` marks a time that a part lacks. */
export function joinParts(
  parts: readonly Part[],
  window: Window,
  alwaysShown: readonly string[] = [],
): ChartData {
  const withTimes = parts.filter(({ times }) => times.length > 0);
  const times = joinTimes(withTimes.map((part) => part.times));
  const series = withTimes.flatMap((part) =>
    part.series.map((series) => alignValues(series, part.times, times)),
  );
  const notes = [...new Set(parts.flatMap((part) => part.notes))];
  return {
    window,
    times,
    series: withLabels(withUniqueKeys(series), alwaysShown),
    resolution: parts[0]?.resolution ?? window.resolution,
    isCoarse: false,
    incompleteFrom: parts.find((part) => part.incompleteFrom !== undefined)?.incompleteFrom,
    notes,
    rest: [],
  };
}

/** The slots in which a value counts as a value of now: the last ones may not have arrived yet. */
const NOW_SLOTS = 5;

/** The last value of the last complete slots; `undefined` without any. */
export function valueNow(values: Values, completeCount: number): number | undefined {
  for (let k = completeCount - 1; k >= Math.max(completeCount - NOW_SLOTS, 0); k--) {
    const value = values[k];
    if (typeof value === "number") return value;
  }
  return undefined;
}

/** The indexes of series, the largest values of now first. */
export function orderByValue(
  series: readonly DrawnSeries[],
  times: readonly number[],
  incompleteFrom: number | undefined,
): number[] {
  const complete = completeCount(times, incompleteFrom);
  const ranks = series.map(({ values }) => valueNow(values, complete) ?? -Infinity);
  return series.map((_, k) => k).sort((a, b) => (ranks[b] ?? 0) - (ranks[a] ?? 0) || a - b);
}

/** Separates the drawn series, those with the largest values now, from the rest. */
export function withDrawnPart(data: ChartData): ChartData {
  if (data.series.length <= DRAWN_MAX) return data;
  const order = orderByValue(data.series, data.times, data.incompleteFrom);
  const drawn = new Set(order.slice(0, DRAWN_MAX));
  return {
    ...data,
    series: data.series.filter((_, k) => drawn.has(k)),
    rest: data.series.filter((_, k) => !drawn.has(k)),
  };
}

function joinTimes(timeLists: readonly number[][]): number[] {
  const [first, ...others] = timeLists;
  if (!first) return [];
  const isFirst = (times: number[]) =>
    times.length === first.length && times.every((time, i) => time === first[i]);
  if (others.every(isFirst)) return first;
  return [...new Set(timeLists.flat())].sort((a, b) => a - b);
}

function alignValues(series: DrawnSeries, from: number[], to: number[]): DrawnSeries {
  if (from === to || from.length === to.length) return series;
  const indices = new Map(from.map((time, index) => [time, index]));
  const alignToTimes = (values: Values) =>
    to.map((time) => {
      const index = indices.get(time);
      return index === undefined ? undefined : values[index];
    });
  const { band, distribution } = series;
  const countsAt = (time: number) => distribution?.counts[indices.get(time) ?? -1] ?? [];
  return {
    ...series,
    values: alignToTimes(series.values),
    ...(distribution ? { distribution: { ...distribution, counts: to.map(countsAt) } } : {}),
    ...(band ? { band: { min: alignToTimes(band.min), max: alignToTimes(band.max) } } : {}),
  };
}

/** Gives each series a distinct key, because two queries may return the same series. */
function withUniqueKeys(series: DrawnSeries[]): DrawnSeries[] {
  const counts = new Map<string, number>();
  return series.map((series) => {
    const count = (counts.get(series.key) ?? 0) + 1;
    counts.set(series.key, count);
    return count === 1 ? series : { ...series, key: `${series.key} #${count}` };
  });
}

/** Labels the series without a label by their differences; see `labels.ts`. */
function withLabels(series: DrawnSeries[], alwaysShown: readonly string[]): DrawnSeries[] {
  const labels = labelsOf(series, alwaysShown);
  return series.map((line, k) => {
    if (line.label) return line;
    const label = labels[k] ?? "";
    return { ...line, label: label || line.metric || seriesName("", line.tags) || "value" };
  });
}
