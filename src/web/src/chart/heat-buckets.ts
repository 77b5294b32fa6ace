/**
 * The heat map of histograms: each cell shows how many observations one slot has in one bucket.
 * Histograms with different buckets share the cells between all their bounds.
 */
import type uPlot from "uplot";
import type { Distribution } from "../api/types";
import { valueText, type Unit } from "../model/units";
import type { DrawnSeries } from "./data";
import { alphaOf, columnsOf, fillWithin, fractionOf } from "./heat";

/** The minimum height of a cell, in pixels: zero has no extent on a logarithmic axis. */
const HEIGHT_MIN_PX = 3;

/** The observations of a chart, in cells between neighbouring edges. */
export interface BucketGrid {
  /** The lower and upper edge of each row, ascending. */
  rows: [number, number][];
  /** For each slot, the number of observations in each row; empty without observations. */
  counts: number[][];
}

const clamped = (value: number, least: number, most: number) =>
  Math.min(Math.max(value, least), most);

/** A bucket with finite edges: an infinite bucket extends by its other edge. */
function edgesOf([lower, upper]: [number | null, number | null]): [number, number] {
  if (lower === null) return [clamped(2 * (upper ?? 0), -Number.MAX_VALUE, 0), upper ?? 0];
  return [lower, upper ?? clamped(2 * lower, 0, Number.MAX_VALUE)];
}

/** The cells of the shown histograms; `undefined` when no series has a distribution. */
export function bucketGrid(
  series: readonly DrawnSeries[],
  shown: readonly boolean[],
): BucketGrid | undefined {
  const byBounds = new Map<Distribution["bounds"], Distribution>();
  // The percentiles of a line share its distribution.
  series.forEach(({ distribution }, k) => {
    if (distribution && shown[k]) byBounds.set(distribution.bounds, distribution);
  });
  if (!series.some(({ distribution }) => distribution)) return undefined;
  const [first, ...others] = byBounds.values();
  if (!first) return { rows: [], counts: [] };
  if (others.length === 0) return { rows: first.bounds.map(edgesOf), counts: first.counts };
  return joinedGrid([first, ...others]);
}

/** Divides the buckets of all distributions at all their edges, by the width of the parts. */
function joinedGrid(distributions: readonly Distribution[]): BucketGrid {
  const rows = joinedRows(distributions.flatMap(({ bounds }) => bounds.map(edgesOf)));
  const counts: number[][] = (distributions[0]?.counts ?? []).map(() => []);
  for (const { bounds, counts: ofSlots } of distributions) {
    bounds.map(edgesOf).forEach((edges, bucket) => {
      const parts = partsOf(edges, rows);
      ofSlots.forEach((slot, k) => {
        const joined = counts[k];
        if (!joined || slot.length === 0) return;
        if (joined.length === 0) joined.push(...rows.map(() => 0));
        for (const [row, part] of parts)
          joined[row] = (joined[row] ?? 0) + (slot[bucket] ?? 0) * part;
      });
    });
  }
  return { rows, counts };
}

/** The rows between neighbouring edges inside of buckets, and those of buckets without width. */
function joinedRows(buckets: readonly [number, number][]): [number, number][] {
  const edges = [...new Set(buckets.flat())].sort((a, b) => a - b);
  const isCovered = ([lower, upper]: [number, number]) =>
    buckets.some(([from, to]) => from <= lower && upper <= to);
  const points = new Set(buckets.filter(([from, to]) => from === to).map(([at]) => at));
  return edges.flatMap((lower, k) => {
    const upper = edges[k + 1];
    const above: [number, number][] = upper === undefined ? [] : [[lower, upper]];
    const point: [number, number][] = points.has(lower) ? [[lower, lower]] : [];
    return [...point, ...above.filter(isCovered)];
  });
}

/** The rows inside of a bucket, with the part of its observations in each; the sum is 1. */
function partsOf([from, to]: [number, number], rows: readonly [number, number][]) {
  // The halves avoid an overflow of the width.
  const place = from > 0 ? Math.log : (value: number) => value / 2;
  const inside = rows.flatMap(([lower, upper], row) =>
    from <= lower && upper <= to ? [{ row, width: place(upper) - place(lower) }] : [],
  );
  const sum = inside.reduce((sum, { width }) => sum + width, 0);
  return inside.map(({ row, width }): [number, number] => [
    row,
    sum > 0 ? width / sum : 1 / inside.length,
  ]);
}

/** True for a bucket around zero, which has no place on a logarithmic axis. */
const isAroundZero = ([lower, upper]: [number, number]) => lower < 0 && upper > 0;

/** The smallest and largest edge to draw; empty without observations. */
export function extentOf({ rows }: BucketGrid, isLog: boolean): number[] {
  const drawn = rows.filter((row) => !isAroundZero(row) && (!isLog || row[1] > 0));
  const edges = drawn.flatMap(([lower, upper]) => [isLog && lower <= 0 ? upper / 2 : lower, upper]);
  return edges.length > 0 ? [Math.min(...edges), Math.max(...edges)] : [];
}

/** Returns true for histograms whose observations all have a place on a logarithmic axis. */
export function fitsLogAxis(series: readonly DrawnSeries[]): boolean {
  return series.every(({ distribution }) =>
    distribution?.bounds.map(edgesOf).every((edges) => edges[0] >= 0 || isAroundZero(edges)),
  );
}

/** `100 ms to 120 ms: 42 of 512 observations`: the cell at a value. */
export function cellText(grid: BucketGrid, index: number, value: number, unit: Unit): string {
  const counts = grid.counts[index] ?? [];
  const row = grid.rows.findIndex(([lower, upper]) => lower < value && value <= upper);
  const [lower, upper] = grid.rows[row] ?? [];
  if (counts.length === 0 || lower === undefined || upper === undefined) return "";
  const count = (number: number) => Math.round(number).toLocaleString("en");
  const total = counts.reduce((sum, number) => sum + number, 0);
  const range = `${valueText(lower, unit)} to ${valueText(upper, unit)}`;
  return `${range}: ${count(counts[row] ?? 0)} of ${count(total)} observations`;
}

/** Draws the cells; a column of several slots has their mean. */
export function drawBuckets(u: uPlot, grid: BucketGrid, isLog: boolean, colour: string): void {
  const { ctx, bbox } = u;
  const { min = 0, max = 1 } = u.scales["y"] ?? {};
  const { columns, cellWidth, columnOf } = columnsOf(u);
  const width = grid.rows.length;
  const sums = new Float64Array(columns * width);
  const slots = new Float64Array(columns);
  grid.counts.forEach((counts, k) => {
    const column = columnOf[k] ?? -1;
    if (column < 0 || column >= columns) return;
    slots[column] = (slots[column] ?? 0) + 1;
    counts.forEach((count, row) => {
      const at = column * width + row;
      sums[at] = (sums[at] ?? 0) + count;
    });
  });
  const means = sums.map((sum, at) => sum / (slots[Math.floor(at / width)] || 1));
  const most = means.reduce((greatest, mean) => Math.max(greatest, mean), 0);
  const yOf = (value: number) => {
    const fraction = Math.min(Math.max(fractionOf(value, min, max, isLog), 0), 1);
    return Math.round(bbox.top + bbox.height * (1 - fraction));
  };
  const places = grid.rows.map(([lower, upper]) => {
    const bottom = yOf(lower);
    return { top: Math.min(yOf(upper), bottom - HEIGHT_MIN_PX * devicePixelRatio), bottom };
  });
  fillWithin(u, colour, () =>
    means.forEach((mean, at) => {
      const [column, place] = [Math.floor(at / width), places[at % width]];
      if (mean <= 0 || !place) return;
      // Whole pixels, so that no lines appear between cells.
      const [left = 0, right = 0] = [column, column + 1].map((c) =>
        Math.round(bbox.left + c * cellWidth),
      );
      ctx.globalAlpha = alphaOf(mean, most);
      ctx.fillRect(left, place.top, right - left, place.bottom - place.top);
    }),
  );
}
