/** Drawings other than series: the current slot, annotations, thresholds. */
import type uPlot from "uplot";
import type { Annotation } from "../api/types";
import { escapeReordering } from "../model/harmless";
import { periodsOf } from "./annotations";

export interface Threshold {
  value: number;
  label?: string;
}

export interface Marks {
  /** Start of the current slot. */
  incompleteFrom: number | undefined;
  annotations: readonly Annotation[];
  thresholds: readonly Threshold[];
}

export interface MarkColours {
  hatch: string;
  threshold: string;
  background: string;
  font: string;
  annotation: Record<Annotation["source"], string>;
}

/** Pixels between the lines of a hatched area. */
const HATCH_PX = 7;

/** Draws everything beneath the series. */
export function drawBeneath(u: uPlot, marks: Marks, colours: MarkColours): void {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  if (marks.incompleteFrom !== undefined) {
    drawHatching(u, u.valToPos(marks.incompleteFrom, "x", true), colours.hatch);
  }
  for (const period of periodsOf(marks.annotations)) {
    const left = u.valToPos(period.start, "x", true);
    const right = u.valToPos(period.end, "x", true);
    ctx.globalAlpha = 0.12;
    ctx.fillStyle = colours.annotation[period.source];
    ctx.fillRect(left, bbox.top, Math.max(right - left, 1), bbox.height);
  }
  ctx.restore();
}

function drawHatching({ ctx, bbox }: uPlot, from: number, colour: string): void {
  const left = Math.max(from, bbox.left);
  const right = bbox.left + bbox.width;
  if (left >= right) return;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, bbox.top, right - left, bbox.height);
  ctx.clip();
  ctx.beginPath();
  for (let x = left - bbox.height; x < right; x += HATCH_PX * ratio) {
    ctx.moveTo(x, bbox.top + bbox.height);
    ctx.lineTo(x + bbox.height, bbox.top);
  }
  ctx.strokeStyle = colour;
  ctx.lineWidth = ratio;
  ctx.stroke();
  ctx.restore();
}

/** Draws everything above the series. */
export function drawAbove(u: uPlot, marks: Marks, colours: MarkColours): void {
  const { ctx, bbox } = u;
  const ratio = devicePixelRatio;
  ctx.save();
  for (const { time, source } of marks.annotations) {
    const x = Math.round(u.valToPos(time, "x", true)) + 0.5;
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.strokeStyle = ctx.fillStyle = colours.annotation[source];
    ctx.lineWidth = ratio;
    ctx.setLineDash([3 * ratio, 3 * ratio]);
    drawLine(ctx, x, bbox.top, x, bbox.top + bbox.height);
    drawFlag(ctx, x, bbox.top, 5 * ratio);
  }
  drawThresholds(u, marks.thresholds, colours);
  ctx.restore();
}

/** Space between a threshold and its name, and around the name. */
const NAME_PX = { above: 4, inside: 6, around: 3, height: 11 };

/** Draws thresholds from the highest; a name that would overlap another name is left out. */
function drawThresholds(u: uPlot, thresholds: readonly Threshold[], colours: MarkColours): void {
  let lastNamedY = -Infinity;
  for (const threshold of [...thresholds].sort((a, b) => b.value - a.value)) {
    const y = u.valToPos(threshold.value, "y", true);
    const hasRoom = y - lastNamedY > 2 * NAME_PX.height * devicePixelRatio;
    drawThreshold(u, hasRoom ? threshold : { value: threshold.value }, colours);
    if (hasRoom) lastNamedY = y;
  }
}

function drawThreshold(u: uPlot, { value, label }: Threshold, colours: MarkColours): void {
  const { ctx, bbox } = u;
  const roundedY = Math.round(u.valToPos(value, "y", true));
  if (roundedY < bbox.top || roundedY > bbox.top + bbox.height) return;
  const y = roundedY + 0.5;
  ctx.strokeStyle = colours.threshold;
  ctx.lineWidth = 1.5 * devicePixelRatio;
  ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
  drawLine(ctx, bbox.left, y, bbox.left + bbox.width, y);
  if (label) drawThresholdName(u, label, y, colours);
}

/** Draws the name of a threshold above its line, at the right, or below it. */
function drawThresholdName(
  { ctx, bbox }: uPlot,
  name: string,
  y: number,
  colours: MarkColours,
): void {
  const ratio = devicePixelRatio;
  const { above, inside, around, height } = NAME_PX;
  ctx.font = `${height * ratio}px ${colours.font}`;
  ctx.textAlign = "right";
  ctx.textBaseline = "bottom";
  const widthMax = bbox.width - 2 * inside * ratio;
  let text = escapeReordering(name);
  while (text.length > 4 && ctx.measureText(text).width > widthMax) text = `${text.slice(0, -2)}…`;
  const right = bbox.left + bbox.width - inside * ratio;
  const isBelow = y - (height + above + around) * ratio < bbox.top;
  const bottom = isBelow ? y + (height + above + around) * ratio : y - above * ratio;
  const { width } = ctx.measureText(text);
  ctx.globalAlpha = 0.8;
  ctx.fillStyle = colours.background;
  const left = right - width - around * ratio;
  ctx.fillRect(left, bottom - height * ratio, width + 2 * around * ratio, height * ratio);
  ctx.globalAlpha = 1;
  ctx.fillStyle = colours.threshold;
  ctx.fillText(text, right, bottom);
}

function drawLine(ctx: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number) {
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.lineTo(x1, y1);
  ctx.stroke();
}

function drawFlag(ctx: CanvasRenderingContext2D, x: number, y: number, size: number) {
  ctx.beginPath();
  ctx.moveTo(x - size, y);
  ctx.lineTo(x + size, y);
  ctx.lineTo(x, y + size * 1.4);
  ctx.closePath();
  ctx.fill();
}

/** The annotations at a time, within a tolerance. */
export function annotationsAt(
  annotations: readonly Annotation[],
  time: number,
  tolerance: number,
): Annotation[] {
  return annotations.filter(({ time: start, end }) =>
    end === null
      ? Math.abs(start - time) <= tolerance
      : time >= start - tolerance && time <= end + tolerance,
  );
}
