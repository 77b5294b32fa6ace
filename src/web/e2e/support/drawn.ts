/** The drawn values of the charts of a page, which the page exposes in `window.granaryCharts`. */
import type { Page } from "@playwright/test";
import type { ChartAnswer, ChartSeries } from "../../src/api/types";
import { chartOf } from "./charts";

export interface DrawnChart {
  times: number[];
  /** Values by the key of each series: metric, tags and number. */
  series: Record<string, (number | null)[]>;
}

/** The chart with this title, once it draws values and no coarser preview. */
export async function drawn(page: Page, title: string): Promise<DrawnChart> {
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
  return drawnNow(page, title);
}

/** The chart with this title, without waiting. */
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

/** The pointed time among a chart's times, by the clock in Berlin. */
export async function shownPlace(page: Page, title: string): Promise<number> {
  const shown = await chartOf(page, title).locator(".chart-time").textContent();
  const clock = /\d\d:\d\d/.exec(shown ?? "")?.[0] ?? "no time";
  const { times } = await drawnNow(page, title);
  const places = [...times.keys()].filter((place) => {
    const local = new Date(times[place] ?? NaN).toLocaleTimeString("en-GB", {
      timeZone: "Europe/Berlin",
    });
    return local.startsWith(clock);
  });
  const [place, ...others] = places;
  if (place === undefined || others.length > 0)
    throw new Error(`${places.length} drawn times match the shown time: ${shown ?? "none"}`);
  return place;
}

/** The titles of the charts on the page. */
export function titles(page: Page): Promise<string[]> {
  return page.evaluate(() => [...(window.granaryCharts?.keys() ?? [])]);
}

/** The page's key for a series of an answer. */
function keyOf({ metric, tags, display }: ChartSeries): string {
  const pairs = Object.entries(tags).sort(([a], [b]) => (a < b ? -1 : 1));
  const inside = pairs.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", ");
  return `${inside ? `${metric}{${inside}}` : metric} ${display}`;
}

/** An answer of the API in the form of the drawn values. */
export function ofAnswer(answer: ChartAnswer): DrawnChart {
  const values = answer.series.map((series): [string, (number | null)[]] => [
    keyOf(series),
    series.points.map(([, value]) => value),
  ]);
  const times = answer.series[0]?.points.map(([time]) => time) ?? [];
  return { times, series: Object.fromEntries(values) };
}
