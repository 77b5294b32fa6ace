/** Charts of many series: the plot, the legend, the box next to the pointer, the heat map. */
import type { Page } from "@playwright/test";
import { areaOf, boxOf, chartOf, chooseFromMenu, nextFrame } from "./support/charts";
import type { Sample } from "./support/daemon";
import { currentMinute } from "./support/data";
import { drawnChart } from "./support/drawn";
import { storeMany } from "./support/panels";
import { expect, test } from "./support/test";
import { DAY, MINUTE } from "./support/zones";

const METRIC = "queue_length";

/** Returns samples of hosts whose values rise with their number, and never cross. */
function samples(count: number): Sample[] {
  const now = currentMinute();
  return Array.from({ length: count }, (_, k) =>
    Array.from({ length: 60 }, (_, minute) => ({
      metric: METRIC,
      tags: { host: `host-${k + 1}`, set: `n${count}`, rack: `r${k % 3}` },
      time: now - (minute + 1) * MINUTE,
      value: 10 * (k + 1),
    })),
  ).flat();
}

const exploreUrl = (count: number) => `/explore?metric=${METRIC}&tags=set%3Dn${count}&range=1h`;
const foldButton = (page: Page) => chartOf(page, METRIC).locator(".legend-fold");
const legendLabels = (page: Page) => chartOf(page, METRIC).locator(".legend-label");

/** Moves the mouse over the middle of a chart at a height, from 0 at the top to 1. */
async function pointAt(page: Page, title: string, height: number): Promise<void> {
  const box = await boxOf(areaOf(page, title));
  await page.mouse.move(box.at(0.5), box.y + height * box.height);
  await nextFrame(page);
}

test("the legend of many series folds, and lists the largest values first", async ({
  page,
  startDaemon,
}) => {
  const daemon = await startDaemon();
  await daemon.postSamples([...samples(3), ...samples(20)]);
  await page.goto(daemon.url + exploreUrl(3));
  await drawnChart(page, METRIC);
  await expect(legendLabels(page)).toHaveText(["host-1", "host-2", "host-3"]);
  await expect(foldButton(page)).toBeHidden();

  await page.goto(daemon.url + exploreUrl(20));
  await drawnChart(page, METRIC);
  await expect(foldButton(page)).toHaveText("20 series");
  await expect(legendLabels(page)).toHaveCount(0);
  await foldButton(page).click();
  await expect(page).toHaveURL(/legend\.explore=1/);
  await expect(legendLabels(page)).toHaveText(
    Array.from({ length: 20 }, (_, k) => `host-${20 - k}`),
  );
  await chartOf(page, METRIC).getByRole("button", { name: "host-7", exact: true }).click();
  await expect(foldButton(page)).toHaveText("1 of 20 series shown");
});

test("the box beside the pointer lists the nearest series by value", async ({
  page,
  startDaemon,
}) => {
  const daemon = await startDaemon();
  await daemon.postSamples(samples(20));
  await page.goto(daemon.url + exploreUrl(20));
  await drawnChart(page, METRIC);
  await pointAt(page, METRIC, 0.98);
  const tip = chartOf(page, METRIC).locator(".plot-tip");
  await expect(tip.locator(".plot-tip-row")).toHaveText(
    Array.from({ length: 10 }, (_, k) => new RegExp(`^host-${10 - k}${10 * (10 - k)}`)),
  );
  await expect(tip.locator(".is-near")).toHaveText(/^host-1\D*10/);
  await expect(tip).toContainText("10 more");
  await pointAt(page, METRIC, 0.02);
  await expect(tip.locator(".plot-tip-row").first()).toHaveText(/^host-20200/);
  await page.mouse.move(5, 5);
  await expect(tip).toBeHidden();
});

test("more than 30 series are a heat map of all of them, or lines of the top 100", async ({
  page,
  startDaemon,
}) => {
  const daemon = await startDaemon();
  await daemon.postSamples(samples(200));
  await page.goto(daemon.url + exploreUrl(200));
  await drawnChart(page, METRIC);
  await expect(foldButton(page)).toContainText("200 series, 100 listed by value now");
  await expect(foldButton(page)).toContainText("many per cell");
  // All cells of a column up to the largest value have a series.
  const inkedShare = () =>
    page.evaluate((title) => {
      const card = document.querySelector(`[data-chart=${CSS.escape(title)}]`);
      const canvas = card?.querySelector<HTMLCanvasElement>(".uplot canvas");
      const ctx = canvas?.getContext("2d");
      if (!canvas || !ctx) return 0;
      const { data } = ctx.getImageData(canvas.width / 2, 0, 1, canvas.height);
      return data.filter((part, k) => k % 4 === 3 && part > 25).length / canvas.height;
    }, METRIC);
  expect(await inkedShare()).toBeGreaterThan(0.7);
  await pointAt(page, METRIC, 0.5);
  await expect(chartOf(page, METRIC).locator(".plot-tip-row")).toHaveCount(10);

  await chartOf(page, METRIC).getByRole("button", { name: "More", exact: true }).click();
  const item = page.getByRole("menuitemcheckbox", { name: "Heat map" });
  await expect(item).toBeChecked();
  await item.click();
  await expect(page).toHaveURL(/heat\.explore=0/);
  await expect(foldButton(page)).toHaveText("100 of 200 series, by value now");
  const { series } = await drawnChart(page, METRIC);
  expect(Object.keys(series)).toHaveLength(100);
  expect(Object.keys(series).some((key) => key.includes('"host-1"'))).toBe(false);
  expect(Object.keys(series).some((key) => key.includes('"host-200"'))).toBe(true);
  await chooseFromMenu(page, METRIC, "Stacked areas");
  await expect(foldButton(page)).toHaveText("100 of 200 series, by value now");
});

test("the plot has at least 60 % of each panel", async ({ page, startDaemon }) => {
  const daemon = await startDaemon();
  const counts = [1, 3, 20, 200];
  await daemon.postSamples(counts.flatMap(samples));
  const title = (count: number) => `Queue of ${count}`;
  await storeMany(daemon, { metric: METRIC, counts, title });
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: 900 });
    await page.goto(`${daemon.url}/dashboards/many?range=1h`);
    for (const panel of counts.map(title)) {
      await chartOf(page, panel).scrollIntoViewIfNeeded();
      await drawnChart(page, panel);
      const share = await chartOf(page, panel).evaluate((card) => {
        const plot = card.querySelector(".chart-plot");
        return (plot?.clientHeight ?? 0) / card.clientHeight;
      });
      expect(share, `${panel} at ${width}`).toBeGreaterThanOrEqual(0.6);
    }
  }
});

test("earlier values are ghost lines, and the box beside the pointer names the change", async ({
  page,
  startDaemon,
}) => {
  const daemon = await startDaemon();
  const samples = [0, 1, 7].flatMap((days) =>
    Array.from({ length: 60 }, (_, minute) => ({
      metric: METRIC,
      tags: { host: "host-1" },
      time: currentMinute() - days * DAY - (minute + 1) * MINUTE,
      value: days === 0 ? 10 : days === 1 ? 8 : 20,
    })),
  );
  await daemon.postSamples(samples);
  await page.goto(`${daemon.url}/explore?metric=${METRIC}&range=1h`);
  await drawnChart(page, METRIC);
  await chooseFromMenu(page, METRIC, "Compare with yesterday");
  await expect(page).toHaveURL(/compare\.explore=1d/);
  await expect(legendLabels(page)).toHaveText([METRIC, `${METRIC}, yesterday`]);
  const { series } = await drawnChart(page, METRIC);
  const [ghost = []] = Object.entries(series).flatMap(([key, values]) =>
    key.endsWith(" 1d") ? [values] : [],
  );
  const values = ghost.filter((value) => value !== null);
  expect(values.length).toBeGreaterThan(50);
  expect(new Set(values)).toEqual(new Set([8]));
  await pointAt(page, METRIC, 0.5);
  const tip = chartOf(page, METRIC).locator(".plot-tip");
  await expect(tip.locator(".plot-tip-row")).toHaveCount(2);
  await pointAt(page, METRIC, 0.2);
  await expect(tip).toContainText("2 more than yesterday (+25 %)");
});
