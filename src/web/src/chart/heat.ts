/**
 * The heat map of many series: each cell shows how many series have a value in its range, at its
 * time. Lines of that many series would hide each other.
 */
import type uPlot from "uplot";
import type { Values } from "../model/stack";

/** Charts of more shown lines are heat maps, unless the reader chooses lines. */
export const LINES_MAX = 30;

/** The minimum width of a cell and its height, in pixels. */
const CELL_PX = { width: 4, height: 7 };
/** The opacity of a cell with few series, and of the cell with the most. */
const ALPHA = { least: 0.14, most: 0.95 };

export interface HeatGrid {
  columns: number;
  rows: number;
  /** The mean number of series, by column and then by row from the bottom. */
  counts: Float32Array;
  most: number;
}

/** The places of values in a heat map. */
export interface HeatPlaces {
  columns: number;
  rows: number;
  /** The column of each slot; outside of the grid, it is not counted. */
  columnOf: readonly number[];
  /** The row of a value; outside of the grid, it is not counted. */
  rowOf: (value: number) => number;
}

/** Counts the series of each cell; a column of several slots has their mean. */
export function heatGrid(series: readonly Values[], places: HeatPlaces): HeatGrid {
  const { columns, rows, columnOf, rowOf } = places;
  const counts = new Float32Array(columns * rows);
  const slots = new Float32Array(columns);
  const add = (to: Float32Array, at: number, part: number) => (to[at] = (to[at] ?? 0) + part);
  for (const column of columnOf) if (column >= 0 && column < columns) add(slots, column, 1);
  for (const values of series) {
    for (let k = 0; k < values.length; k++) {
      const [value, column = -1] = [values[k], columnOf[k]];
      if (typeof value !== "number" || column < 0 || column >= columns) continue;
      const row = rowOf(value);
      if (row >= 0 && row < rows) add(counts, column * rows + row, 1 / (slots[column] ?? 1));
    }
  }
  return { columns, rows, counts, most: counts.reduce((most, count) => Math.max(most, count), 0) };
}

/** The position of a value on a scale, from 0 to 1 within the scale. */
export function fractionOf(value: number, min: number, max: number, isLog: boolean): number {
  if (!isLog) return (value - min) / (max - min);
  // Zero has no place on a logarithmic axis: it is drawn at the bottom.
  return value <= min ? 0 : Math.log(value / min) / Math.log(max / min);
}

/** The opacity of a cell. */
export function alphaOf(count: number, most: number): number {
  if (count <= 0 || most <= 0) return 0;
  return ALPHA.least + (ALPHA.most - ALPHA.least) * Math.sqrt(count / most);
}

/** Draws heat maps, and keeps the last grid: a redraw for the pointer changes nothing in it. */
export class Heat {
  private grid: HeatGrid | undefined;
  private gridKey: unknown[] = [];

  draw(u: uPlot, series: readonly Values[], isLog: boolean, colour: string): void {
    const { ctx, bbox } = u;
    const { min: left = 0, max: right = 1 } = u.scales["x"] ?? {};
    const { min = 0, max = 1 } = u.scales["y"] ?? {};
    const { columns, cellWidth, columnOf } = columnsOf(u);
    const rows = Math.max(Math.round(bbox.height / devicePixelRatio / CELL_PX.height), 1);
    const key = [series, left, right, min, max, columns, rows, isLog];
    if (!this.grid || key.some((part, k) => part !== this.gridKey[k])) {
      const rowOf = (value: number) => {
        const fraction = fractionOf(value, min, max, isLog);
        return fraction === 1 ? rows - 1 : Math.floor(fraction * rows);
      };
      this.grid = heatGrid(series, { columns, rows, columnOf, rowOf });
      this.gridKey = key;
    }
    const { counts, most } = this.grid;
    const cellHeight = bbox.height / rows;
    fillWithin(u, colour, () =>
      counts.forEach((count, at) => {
        if (count <= 0) return;
        const [column, row] = [Math.floor(at / rows), at % rows];
        // Whole pixels, so that no lines appear between cells.
        const [x0, x1] = [column, column + 1].map((c) => Math.round(bbox.left + c * cellWidth));
        const [y1, y0] = [row, row + 1].map((r) =>
          Math.round(bbox.top + bbox.height - r * cellHeight),
        );
        ctx.globalAlpha = alphaOf(count, most);
        ctx.fillRect(x0 ?? 0, y0 ?? 0, (x1 ?? 0) - (x0 ?? 0), (y1 ?? 0) - (y0 ?? 0));
      }),
    );
  }
}

/** Draws with a colour, within the plot. */
export function fillWithin({ ctx, bbox }: uPlot, colour: string, draw: () => void): void {
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = colour;
  draw();
  ctx.restore();
}

/** The columns of a heat map, at least some pixels wide, and the column of each slot. */
export function columnsOf(u: uPlot): { columns: number; cellWidth: number; columnOf: number[] } {
  const { width } = u.bbox;
  const { min: left = 0, max: right = 1 } = u.scales["x"] ?? {};
  const slotPx = width / Math.max(slotCount(u.data[0], left, right), 1);
  const cellWidth = slotPx * Math.max(Math.ceil((CELL_PX.width * devicePixelRatio) / slotPx), 1);
  const columnOf = Array.from(u.data[0], (time) => {
    const x = ((time - left) / (right - left)) * width;
    return Math.floor(x / cellWidth + 1e-6);
  });
  return { columns: Math.ceil(width / cellWidth), cellWidth, columnOf };
}

/** The number of slots of the width of the first one that fit in the shown time. */
function slotCount(times: ArrayLike<number>, left: number, right: number): number {
  const [first = 0, second = 0] = [times[0], times[1]];
  return second > first ? (right - left) / (second - first) : 1;
}
