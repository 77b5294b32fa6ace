/** The charts on the page, by title: tests read the drawn values here. */
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

/** Registers a chart by its title; a second chart with the same title is `TITLE (2)`. */
export function registerChart(title: string, read: () => DrawnChart): () => void {
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
  return () => {
    if (charts.get(name) === entry) charts.delete(name);
  };
}
