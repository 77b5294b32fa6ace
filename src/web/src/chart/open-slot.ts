/**
 * The current slot of a chart: its samples are incomplete, so lines into it are dashed, and
 * summaries leave it out.
 */
import type uPlot from "uplot";
import type { Values } from "../model/stack";

const DASH_PX = [3, 3];

/** The number of complete slots. */
export function closedCount(times: ArrayLike<number>, incompleteFrom: number | undefined): number {
  let closed = times.length;
  while (incompleteFrom !== undefined && closed > 0) {
    if ((times[closed - 1] ?? 0) < incompleteFrom) break;
    closed--;
  }
  return closed;
}

/** The last index before `end` with a number; `null` is a gap, `undefined` is not. */
function numberBefore(values: Values, end: number): number | undefined {
  for (let place = end - 1; place >= 0; place--) {
    const value = values[place];
    if (value === null) return undefined;
    if (value !== undefined) return place;
  }
  return undefined;
}

/** The pixels of a line that uPlot leaves out: from the last complete slot on. */
export function openGap(
  u: uPlot,
  line: number,
  incompleteFrom: number | undefined,
): [number, number][] {
  const [times, values] = [u.data[0], u.data[line] as Values | undefined];
  const closed = closedCount(times, incompleteFrom);
  if (closed === times.length || !values) return [];
  const last = numberBefore(values, closed);
  const from = times[last ?? closed] ?? times[closed] ?? 0;
  const to = u.bbox.left + u.bbox.width;
  return [[Math.min(u.valToPos(from, "x", true), to), to + 1]];
}

/** Draws the parts that `openGap` left out of shown lines, dashed. */
export function drawOpen(u: uPlot, firstLine: number, incompleteFrom: number | undefined): void {
  const times = u.data[0];
  const closed = closedCount(times, incompleteFrom);
  if (closed === times.length) return;
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
    if (!series?.show || !colour) continue;
    ctx.strokeStyle = typeof colour === "function" ? colour(u, line) : colour;
    ctx.lineWidth = (series.width ?? 1) * ratio;
    ctx.beginPath();
    for (let place = numberBefore(values, closed) ?? closed; place < times.length; place++) {
      const [time, value] = [times[place], values[place]];
      if (time === undefined || value === null || value === undefined) continue;
      ctx.lineTo(u.valToPos(time, "x", true), u.valToPos(value, "y", true));
    }
    ctx.stroke();
  }
  ctx.restore();
}
