/**
 * The current slot of a chart: its samples are incomplete, so lines into it are dashed, and
 * summaries leave it out.
 */
import type uPlot from "uplot";
import type { Values } from "../model/stack";

const DASH_PX = [3, 3];

/** The number of complete slots. */
export function completeCount(
  times: ArrayLike<number>,
  incompleteFrom: number | undefined,
): number {
  let complete = times.length;
  while (incompleteFrom !== undefined && complete > 0) {
    if ((times[complete - 1] ?? 0) < incompleteFrom) break;
    complete--;
  }
  return complete;
}

/** The last index before `end` with a number; `null` is a gap, `undefined` is not. */
function lastNumberBefore(values: Values, end: number): number | undefined {
  for (let index = end - 1; index >= 0; index--) {
    const value = values[index];
    if (value === null) return undefined;
    if (value !== undefined) return index;
  }
  return undefined;
}

/** The pixels of a line that uPlot leaves out: from the last complete slot on. */
export function incompleteGap(
  u: uPlot,
  line: number,
  incompleteFrom: number | undefined,
): [number, number][] {
  const [times, values] = [u.data[0], u.data[line] as Values | undefined];
  const complete = completeCount(times, incompleteFrom);
  if (complete === times.length || !values) return [];
  const last = lastNumberBefore(values, complete);
  const from = times[last ?? complete] ?? times[complete] ?? 0;
  const to = u.bbox.left + u.bbox.width;
  return [[Math.min(u.valToPos(from, "x", true), to), to + 1]];
}

/** Draws the parts that `openGap` left out of shown lines, dashed. */
export function drawIncomplete(
  u: uPlot,
  firstLine: number,
  incompleteFrom: number | undefined,
  isDrawn: (series: number) => boolean,
): void {
  const times = u.data[0];
  const complete = completeCount(times, incompleteFrom);
  if (complete === times.length) return;
  const { ctx, bbox } = u;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.setLineDash(DASH_PX.map((length) => length * ratio));
  for (let line = firstLine; line < u.series.length; line++) {
    const [series, values] = [u.series[line], u.data[line] as Values];
    const colour = series?.stroke;
    if (!series?.show || !colour || !isDrawn(line - firstLine)) continue;
    ctx.strokeStyle = typeof colour === "function" ? colour(u, line) : colour;
    ctx.lineWidth = (series.width ?? 1) * ratio;
    ctx.beginPath();
    for (
      let index = lastNumberBefore(values, complete) ?? complete;
      index < times.length;
      index++
    ) {
      const [time, value] = [times[index], values[index]];
      if (time === undefined || value === null || value === undefined) continue;
      ctx.lineTo(u.valToPos(time, "x", true), u.valToPos(value, "y", true));
    }
    ctx.stroke();
  }
  ctx.restore();
}
