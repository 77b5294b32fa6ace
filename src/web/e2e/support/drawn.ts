/** The drawn values of the charts of a page, which the page exposes in `window.granaryCharts`. */
import type { Page } from "@playwright/test";
import type { ChartAnswer, ChartSeries } from "../../src/api/types";
import { chartOf } from "./charts";

export interface DrawnChart {
  times: number[];
  /** Values by the key of each series: metric, tags and number. */
  series: Record<string, (number | null)[]>;
}

/** Returns whether a chart has drawn values; runs in the page. */
export function isChartDrawn(): boolean {
  for (const { series } of window.granaryCharts?.values() ?? []) {
    if (series.some(({ values }) => values.some((value) => value != null))) return true;
  }
  return false;
}

/** Waits until the chart with this title draws values and not a coarser preview; returns it. */
export async function drawnChart(page: Page, title: string): Promise<DrawnChart> {
  await page.waitForFunction(
    (title) => {
      const card = document.querySelector(`[data-chart=${CSS.escape(title)}]`);
      // The preview stays until the fine answer arrives.
      if (card?.querySelector(".chart-bar")) return false;
      const chart = window.granaryCharts?.get(title);
      return chart?.series.some(({ values }) => values.some((value) => value != null));
    },
    title,
    { timeout: 30_000 },
  );
  return currentChart(page, title);
}

/** Returns the chart with this title, without waiting. */
export async function currentChart(page: Page, title: string): Promise<DrawnChart> {
  const { times, series } = await page.evaluate((title) => {
    const chart = window.granaryCharts?.get(title);
    if (!chart)
      throw new Error(`no chart ${title}: ${[...(window.granaryCharts?.keys() ?? [])].join()}`);
    return {
      times: [...chart.times],
      series: chart.series.map(({ key, values }) => ({ key, values: [...values] })),
    };
  }, title);
  const values = series.map(({ key, values }): [string, (number | null)[]] => [
    key,
    values.map((value) => value ?? null),
  ]);
  return { times, series: Object.fromEntries(values) };
}

/** Returns the index of the pointed time among a chart's times, by the clock in Berlin. */
export async function pointedIndex(page: Page, title: string): Promise<number> {
  const shownTime = await chartOf(page, title).locator(".chart-time").textContent();
  const clock = /\d\d:\d\d/.exec(shownTime ?? "")?.[0] ?? "no time";
  const { times } = await currentChart(page, title);
  const indices = [...times.keys()].filter((index) => {
    const local = new Date(times[index] ?? NaN).toLocaleTimeString("en-GB", {
      timeZone: "Europe/Berlin",
    });
    return local.startsWith(clock);
  });
  const [index, ...others] = indices;
  if (index === undefined || others.length > 0)
    throw new Error(`${indices.length} drawn times match the shown time: ${shownTime ?? "none"}`);
  return index;
}

/** Returns the titles of the charts on the page. */
export function chartTitles(page: Page): Promise<string[]> {
  return page.evaluate(() => [...(window.granaryCharts?.keys() ?? [])]);
}

/** Returns the page's key for a series of an answer. */
function keyOf({ metric, tags, display }: ChartSeries): string {
  const pairs = Object.entries(tags).sort(([a], [b]) => (a < b ? -1 : 1));
  const inside = pairs.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", ");
  return `${inside ? `${metric}{${inside}}` : metric} ${display}`;
}

/** Returns an answer of the API in the form of the drawn values. */
export function chartOfAnswer(answer: ChartAnswer): DrawnChart {
  const values = answer.series.map((series): [string, (number | null)[]] => [
    keyOf(series),
    series.points.map(([, value]) => value),
  ]);
  const times = answer.series[0]?.points.map(([time]) => time) ?? [];
  return { times, series: Object.fromEntries(values) };
}
