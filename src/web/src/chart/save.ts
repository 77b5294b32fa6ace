/** Exports of a chart: picture, table, links. */
import { csv } from "../model/csv";
import { escapeReordering } from "../model/harmless";
import type { Window } from "../model/timeframe";
import { clockAt, dateText, dayText, isoIn, timeText, zoneName, type Clock } from "../model/zone";
import type { ChartData } from "./data";
import { seriesName } from "./data";
import type { LegendRow } from "./legend";
import { slug } from "./state";

/** `Sun 29 Mar 2026 04:00 – 05:00 CEST` */
export function timeRangeText({ start, end, zone }: Window): string {
  const [from, to] = [clockAt(zone, start), clockAt(zone, end)];
  const endText =
    dateText(from) === dateText(to) ? timeText(to) : `${dateText(to)} ${timeText(to)}`;
  return `${dateText(from)} ${timeText(from)} – ${endText} ${zoneName(zone, end)}`;
}

/** A short text of a time range: without weekday and zone, and without the current year. */
export function shortRangeText({ start, end, zone }: Window, now: number): string {
  const [from, to] = [clockAt(zone, start), clockAt(zone, end)];
  const { year } = clockAt(zone, now);
  const dateOf = (clock: Clock) =>
    clock.year === year ? dayText(clock) : `${dayText(clock)} ${clock.year}`;
  const endText = dateOf(from) === dateOf(to) ? timeText(to) : `${dateOf(to)} ${timeText(to)}`;
  return `${dateOf(from)} ${timeText(from)} – ${endText}`;
}

/** The drawn values as a table: one row for each slot. */
export function tableOf(data: ChartData, shown: readonly boolean[]): string {
  const { zone } = data.window;
  const columns: { name: string; values: (number | null | undefined)[] }[] = [];
  data.series.forEach((series, k) => {
    if (!shown[k]) return;
    const name = columnName(series);
    columns.push({ name: `${name} ${series.display}`, values: series.values });
    if (series.band) {
      columns.push({ name: `${name} min`, values: series.band.min });
      columns.push({ name: `${name} max`, values: series.band.max });
    }
  });
  return csv({
    head: ["time", ...columns.map(({ name }) => name)],
    times: data.times.map((time) => isoIn(zone, time)),
    columns: columns.map(({ values }) => values),
  });
}

function columnName({ metric, tags, label }: ChartData["series"][number]): string {
  return metric ? seriesName(metric, tags) : label;
}

export function saveFile(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function saveTable(title: string, data: ChartData, shown: readonly boolean[]): void {
  const text = tableOf(data, shown);
  saveFile(`${slug(title)}.csv`, new Blob([text], { type: "text/csv;charset=utf-8" }));
}

export interface Picture {
  title: string;
  window: Window;
  canvas: HTMLCanvasElement;
  rows: readonly LegendRow[];
}

/** Draws title, time range, plot and legend on the theme's background. */
export async function savePicture(picture: Picture): Promise<void> {
  const style = getComputedStyle(document.documentElement);
  const styleValue = (name: string) => style.getPropertyValue(name).trim();
  const { canvas, title } = picture;
  const ratio = devicePixelRatio;
  const rows = picture.rows.filter(({ shown }) => shown);
  const width = canvas.width + 32 * ratio;
  const columns = Math.max(Math.floor(width / (240 * ratio)), 1);
  const legendHeight = Math.ceil(rows.length / columns) * 20 * ratio;
  const pictureCanvas = document.createElement("canvas");
  pictureCanvas.width = width;
  pictureCanvas.height = canvas.height + 76 * ratio + legendHeight;
  const ctx = pictureCanvas.getContext("2d");
  if (!ctx) return;
  ctx.fillStyle = styleValue("--surface");
  ctx.fillRect(0, 0, pictureCanvas.width, pictureCanvas.height);
  ctx.fillStyle = styleValue("--text");
  ctx.font = `600 ${15 * ratio}px ${styleValue("--font")}`;
  ctx.fillText(escapeReordering(title), 16 * ratio, 26 * ratio, width - 32 * ratio);
  ctx.fillStyle = styleValue("--muted");
  ctx.font = `${12 * ratio}px ${styleValue("--font")}`;
  ctx.fillText(timeRangeText(picture.window), 16 * ratio, 45 * ratio, width - 32 * ratio);
  ctx.drawImage(canvas, 16 * ratio, 56 * ratio);
  rows.forEach((row, k) => {
    const x = 16 * ratio + (k % columns) * (width / columns);
    const y = canvas.height + (74 + 20 * Math.floor(k / columns)) * ratio;
    ctx.strokeStyle = row.look.colour;
    ctx.lineWidth = 3 * ratio;
    ctx.setLineDash(row.look.dash.map((n) => n * ratio));
    ctx.beginPath();
    ctx.moveTo(x, y - 4 * ratio);
    ctx.lineTo(x + 16 * ratio, y - 4 * ratio);
    ctx.stroke();
    ctx.fillStyle = styleValue("--text");
    ctx.fillText(escapeReordering(row.label), x + 22 * ratio, y, width / columns - 34 * ratio);
  });
  const blob = await new Promise<Blob | null>((done) => pictureCanvas.toBlob(done, "image/png"));
  if (blob) saveFile(`${slug(title)}.png`, blob);
}

/** The address of the shown state, with its zone; `isFixed` for a link to a fixed time range. */
export function linkTo(window: Window, isFixed: boolean): string {
  const url = new URL(location.href);
  url.searchParams.set("tz", window.zone);
  if (isFixed) {
    url.searchParams.set("resolution", window.resolution);
    url.searchParams.set("start", String(window.start));
    url.searchParams.set("end", String(window.end));
  }
  return url.href;
}
