/** A chart's data: series over common times, made from the daemon's answers. */
import type { ChartAnswer, ChartSeries, Kind, PromqlMatrix, Tags } from "../api/types";
import type { Values } from "../model/stack";
import type { Window } from "../model/timeframe";
import { unitOf, type Unit } from "../model/units";

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
  /** Min and max of each slot. */
  band?: { min: Values; max: Values };
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
  /** The daemon's notes on the answer. */
  notes: string[];
  /** The number of series that are not drawn. */
  undrawnCount: number;
}

/** A query that failed. */
export interface Failure {
  /** Its index among the queries of the chart. */
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

function drawnSeries(series: ChartSeries, unit: string | undefined): DrawnSeries {
  return {
    key: `${seriesName(series.metric, series.tags)} ${series.display}`,
    metric: series.metric,
    tags: series.tags,
    kind: series.kind,
    display: series.display,
    unit: unitOf(unit ?? series.unit, series.display),
    label: "",
    values: series.points.map(([, value]) => value),
  };
}

/** Converts an answer of `/api/v1/chart`; min and max become the band of an average. */
export function partOfChart(answer: ChartAnswer, unit?: string): Part {
  const bands = new Map<string, { min?: Values; max?: Values }>();
  const hasAverages = answer.series.some(({ display }) => display === "avg");
  const isBand = ({ display }: ChartSeries) =>
    hasAverages && (display === "min" || display === "max");
  for (const series of answer.series.filter(isBand)) {
    const name = seriesName(series.metric, series.tags);
    const band = bands.get(name) ?? {};
    band[series.display as "min" | "max"] = series.points.map(([, value]) => value);
    bands.set(name, band);
  }
  const series = answer.series
    .filter((series) => !isBand(series))
    .map((series) => {
      const line = drawnSeries(series, unit);
      const { min, max } = bands.get(seriesName(series.metric, series.tags)) ?? {};
      return min && max ? { ...line, band: { min, max } } : line;
    });
  return {
    times: answer.series[0]?.points.map(([start]) => start) ?? [],
    series,
    resolution: answer.resolution,
    incompleteFrom: answer.incomplete_from,
    notes: answer.notes,
  };
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
  const series = matrix.result.map(({ metric, values }) => {
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
  return { times: request.times, series, resolution, incompleteFrom: undefined, notes: [] };
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
    series: withLabels(withUniqueKeys(series).slice(0, DRAWN_MAX), alwaysShown),
    resolution: parts[0]?.resolution ?? window.resolution,
    isCoarse: false,
    incompleteFrom: parts.find((part) => part.incompleteFrom !== undefined)?.incompleteFrom,
    notes,
    undrawnCount: Math.max(series.length - DRAWN_MAX, 0),
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
  const { band } = series;
  return {
    ...series,
    values: alignToTimes(series.values),
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

/**
 * Labels each series by its differences: metric, number, tags. Tags in `always` are part of the
 * label in any case.
 */
export function withLabels(
  series: DrawnSeries[],
  alwaysShown: readonly string[] = [],
): DrawnSeries[] {
  const differs = (fieldValue: (series: DrawnSeries) => string | undefined) =>
    new Set(series.map(fieldValue)).size > 1;
  const tagNames = [...new Set(series.flatMap(({ tags }) => Object.keys(tags)))].sort();
  const differing = tagNames.filter(
    (name) => alwaysShown.includes(name) || differs(({ tags }) => tags[name]),
  );
  const metricDiffers = differs(({ metric }) => metric);
  const shortName = shortNames(series.map(({ metric }) => metric));
  const displayDiffers = differs((series) => series.display) && !metricDiffers;
  return series.map((series) => {
    if (series.label) return series;
    const present = differing.filter((name) => series.tags[name] !== undefined);
    const values = present.map((name) =>
      differing.length > 1 ? `${name}=${series.tags[name] ?? ""}` : (series.tags[name] ?? ""),
    );
    const words = [
      ...(metricDiffers ? [shortName(series.metric)] : []),
      ...values,
      ...(displayDiffers ? [series.display] : []),
    ].filter((word) => word !== "");
    return {
      ...series,
      label: words.join(" ") || series.metric || seriesName("", series.tags) || "value",
    };
  });
}

/** Removes the words with which all names begin. */
function shortNames(names: readonly string[]): (name: string) => string {
  const [first = "", ...others] = [...new Set(names)];
  const words = first.split(/(?<=[_.:])/);
  let commonPrefix = "";
  for (const word of words.slice(0, -1)) {
    const longerPrefix = commonPrefix + word;
    if (!others.every((name) => name.startsWith(longerPrefix) && name !== longerPrefix)) break;
    commonPrefix = longerPrefix;
  }
  return (name) => name.slice(commonPrefix.length).replaceAll("_", " ") || name;
}
