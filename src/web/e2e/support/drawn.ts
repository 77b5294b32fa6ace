/** What the charts of a page really draw, as the page tells in `window.granaryCharts`. */
import type { Page } from "@playwright/test";
import type { ChartAnswer, ChartSeries } from "../../src/api/types";
import { chartOf } from "./charts";

export interface DrawnChart {
  times: number[];
  /** By the key of each series: its metric, tags and number. */
  series: Record<string, (number | null)[]>;
}

/** The chart of this title, once it draws a number, and none of a coarser answer. */
export async function drawn(page: Page, title: string): Promise<DrawnChart> {
  await page.waitForFunction(
    (title) => {
      const card = document.querySelector(`[data-chart=${CSS.escape(title)}]`);
      // It stands there until the fine answer does.
      if (card?.querySelector(".chart-bar")) return false;
      const chart = window.granaryCharts?.get(title);
      return chart?.series.some(({ values }) => values.some((value) => value != null));
    },
    title,
    { timeout: 30_000 },
  );
  return drawnNow(page, title);
}

/** The same without waiting. */
export async function drawnNow(page: Page, title: string): Promise<DrawnChart> {
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

/** Which of a chart's times it says that is pointed at, by the clock in Berlin. */
export async function placeSaid(page: Page, title: string): Promise<number> {
  const said = await chartOf(page, title).locator(".chart-time").textContent();
  const clock = /\d\d:\d\d/.exec(said ?? "")?.[0] ?? "no time";
  const { times } = await drawnNow(page, title);
  const places = [...times.keys()].filter((place) => {
    const local = new Date(times[place] ?? NaN).toLocaleTimeString("en-GB", {
      timeZone: "Europe/Berlin",
    });
    return local.startsWith(clock);
  });
  const [place, ...others] = places;
  if (place === undefined || others.length > 0)
    throw new Error(`${places.length} of the times drawn are said in: ${said ?? "nothing"}`);
  return place;
}

/** The titles of the charts that are on the page. */
export function titles(page: Page): Promise<string[]> {
  return page.evaluate(() => [...(window.granaryCharts?.keys() ?? [])]);
}

/** How the page calls a series of an answer. */
function keyOf({ metric, tags, display }: ChartSeries): string {
  const pairs = Object.entries(tags).sort(([a], [b]) => (a < b ? -1 : 1));
  const inside = pairs.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", ");
  return `${inside ? `${metric}{${inside}}` : metric} ${display}`;
}

/** An answer of the API in the form of what is drawn. */
export function ofAnswer(answer: ChartAnswer): DrawnChart {
  const values = answer.series.map((series): [string, (number | null)[]] => [
    keyOf(series),
    series.points.map(([, value]) => value),
  ]);
  const times = answer.series[0]?.points.map(([time]) => time) ?? [];
  return { times, series: Object.fromEntries(values) };
}
