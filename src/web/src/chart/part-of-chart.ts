/** An answer of `/api/v1/chart` as a part of a chart. Pure. */
import type { ChartAnswer, ChartSeries } from "../api/types";
import type { Values } from "../model/stack";
import { unitOf } from "../model/units";
import { seriesName, type DrawnSeries, type Part } from "./data";

/** Converts an answer to lines with bands, and to percentiles with their distribution. */
export function partOfChart(answer: ChartAnswer, unit?: string): Part {
  const hasAverages = answer.series.some(({ display }) => display === "avg");
  return {
    times: answer.series[0]?.points.map(([start]) => start) ?? [],
    series: groupsByName(answer.series).flatMap((numbers) => {
      const lines = numbers.map((series) => drawnSeries(series, unit));
      const drawn = hasAverages ? withBand(lines) : lines;
      return withLower(withDistribution(drawn, numbers));
    }),
    resolution: answer.resolution,
    incompleteFrom: answer.incomplete_from,
    notes: answer.notes,
  };
}

/** The numbers of each series. */
function groupsByName(series: readonly ChartSeries[]): ChartSeries[][] {
  const groups = new Map<string, ChartSeries[]>();
  for (const number of series) {
    const name = seriesName(number.metric, number.tags);
    groups.set(name, [...(groups.get(name) ?? []), number]);
  }
  return [...groups.values()];
}

function drawnSeries(series: ChartSeries, unit: string | undefined): DrawnSeries {
  const { metric, tags, kind, display, points } = series;
  return {
    key: `${seriesName(metric, tags)} ${display}`,
    metric,
    tags,
    kind,
    display,
    unit: unitOf(unit ?? wordOf(series), display),
    label: "",
    values: points.map(([, value]) => value),
  };
}

const isPercentile = ({ display }: { display: string }) => /^p\d/.test(display);
const percentOf = ({ display }: { display: string }) => Number(display.slice(1));

/** The unit of a number: of histograms, all numbers but percentiles count observations. */
function wordOf(series: ChartSeries): string {
  return series.kind.endsWith("histogram") && !isPercentile(series) ? "" : series.unit;
}

/** Min and max become the band of the average. */
function withBand(lines: readonly DrawnSeries[]): DrawnSeries[] {
  const valuesOf = (name: string): Values | undefined =>
    lines.find(({ display }) => display === name)?.values;
  const [min, max] = [valuesOf("min"), valuesOf("max")];
  return lines
    .filter(({ display }) => display !== "min" && display !== "max")
    .map((line) => (min && max ? { ...line, band: { min, max } } : line));
}

/** The distribution becomes the heat map of the percentiles. */
function withDistribution(
  lines: readonly DrawnSeries[],
  numbers: readonly ChartSeries[],
): DrawnSeries[] {
  const distribution = numbers.find((number) => number.distribution)?.distribution;
  if (!distribution) return [...lines];
  return lines.filter(isPercentile).map((line) => ({ ...line, distribution }));
}

/** Each percentile names the next lower one. */
function withLower(lines: readonly DrawnSeries[]): DrawnSeries[] {
  const percentiles = lines.filter(isPercentile).sort((a, b) => percentOf(a) - percentOf(b));
  return lines.map((line) => {
    const lower = percentiles[percentiles.indexOf(line) - 1];
    return lower ? { ...line, lower: lower.key } : line;
  });
}
