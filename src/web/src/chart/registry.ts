/** The charts on the page, by title: tests read the drawn values here, other charts their texts. */
import type { Values } from "../model/stack";

export interface DrawnChart {
  times: number[];
  series: { key: string; values: Values }[];
}

/** Each entry reads uPlot's own arrays on demand. */
export const charts = new Map<string, DrawnChart>();

declare global {
  interface Window {
    granaryCharts?: Map<string, DrawnChart>;
  }
}

window.granaryCharts = charts;

/** Functions of the charts that return the largest values at a time, by title. */
const largest = new Map<string, (time: number) => string>();

/** The largest values of another chart at a time; empty without the chart or without values. */
export function largestOf(title: string, time: number): string {
  return largest.get(title)?.(time) ?? "";
}

/**
 * Registers a chart by its title; a second chart with the same title is `TITLE (2)`. `largestAt`
 * returns its largest values at a time.
 */
export function registerChart(
  title: string,
  read: () => DrawnChart,
  largestAt: (time: number) => string,
): () => void {
  let name = title;
  for (let k = 2; charts.has(name); k++) name = `${title} (${k})`;
  const entry: DrawnChart = {
    get times() {
      return read().times;
    },
    get series() {
      return read().series;
    },
  };
  charts.set(name, entry);
  largest.set(name, largestAt);
  return () => {
    if (charts.get(name) !== entry) return;
    charts.delete(name);
    largest.delete(name);
  };
}
