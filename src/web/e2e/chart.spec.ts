/** Charts: values, legend, axes, saved files. */
import type { Page } from "@playwright/test";
import { nextChartRequest } from "./support/asked";
import {
  areaOf,
  boxOf,
  chartOf,
  choose,
  chooseFromMenu,
  legendRow,
  nextFrame,
  textsDrawnDuring,
} from "./support/charts";
import { HOST } from "./support/data";
import { drawnChart, currentChart, pointedIndex } from "./support/drawn";
import { expect, test } from "./support/test";

const SIX_HOURS = `/hosts/${HOST}?resolution=1m&range=6h`;

test("totals and averages per second equal the API's numbers", async ({ page, daemon }) => {
  await page.goto(SIX_HOURS);
  await chartOf(page, "Network received").scrollIntoViewIfNeeded();
  const drawnAndApiNumbers = async (display: string) => {
    const { times, series } = await drawnChart(page, "Network received");
    const answer = await daemon.chart({
      metric: "system_network_bytes_in",
      tags: `host=${HOST}`,
      resolution: "1m",
      start: String(times[0]),
      end: String((times.at(-1) ?? 0) + 1),
      display,
    });
    const [drawnNumbers] = Object.values(series);
    return { drawn: drawnNumbers, api: answer.series[0]?.points.map(([, value]) => value) };
  };
  for (const [choice, display] of [
    ["total", "total"],
    ["avg/sec", "avg_per_sec"],
  ] as const) {
    const request = nextChartRequest(page, "system_network_bytes_in");
    await choose(page, "Display", choice);
    await request;
    await expect(page).toHaveURL(new RegExp(`display=${display}`));
    await expect
      .poll(async () => {
        const { drawn, api } = await drawnAndApiNumbers(display);
        return JSON.stringify(drawn) === JSON.stringify(api);
      })
      .toBe(true);
  }
});

test("all charts show the pointed time and their values at this time", async ({ page }) => {
  await page.goto(SIX_HOURS);
  for (const title of ["Load", "CPU"]) await drawnChart(page, title);
  const { at, middle } = await boxOf(areaOf(page, "Load"));
  await page.mouse.move(at(0.6), middle);
  await nextFrame(page);
  const chartTimes = await page.locator(".chart-time").allTextContents();
  const shownTimes = chartTimes.filter((text) => text !== "" && !text.startsWith("last"));
  expect(shownTimes.length).toBeGreaterThan(1);
  expect(new Set(shownTimes).size).toBe(1);

  const { series } = await currentChart(page, "Load");
  const index = await pointedIndex(page, "Load");
  const value = series[`system_load_5m{host="${HOST}"} avg`]?.[index];
  const shown = await legendRow(page, "Load", "5m").locator(".legend-value").textContent();
  expect(Number.parseFloat(shown ?? "")).toBeCloseTo(value ?? NaN, 2);
  await page.mouse.move(2, 2);
  await nextFrame(page);
  await expect(chartOf(page, "Load").locator(".chart-time")).toContainText("last");
});

test("a click shows only that series, and a click with Shift hides it", async ({ page }) => {
  await page.goto(SIX_HOURS);
  await drawnChart(page, "Load");
  const button = (label: string) => legendRow(page, "Load", label).getByRole("button");
  const labels = ["1m", "5m", "15m"] as const;
  const shown = async () => {
    const states = labels.map((label) => button(label).getAttribute("aria-pressed"));
    return (await Promise.all(states)).map((state) => state === "true");
  };
  await button(labels[1]).click();
  await expect.poll(shown).toEqual([false, true, false]);
  await page.reload();
  await drawnChart(page, "Load");
  await expect.poll(shown).toEqual([false, true, false]);
  await button(labels[1]).click();
  await expect.poll(shown).toEqual([true, true, true]);
  await button(labels[2]).click({ modifiers: ["Shift"] });
  await expect.poll(shown).toEqual([true, true, false]);
});

test("the menu switches to logarithmic axes and stacked areas", async ({ page }) => {
  await page.goto(SIX_HOURS);
  await drawnChart(page, "Load");
  const unstacked = (await currentChart(page, "Load")).series;
  await chooseFromMenu(page, "Load", "Stacked areas");
  await expect(page).toHaveURL(/stacked\.load=1/);
  const keys = Object.keys(unstacked);
  await expect
    .poll(async () => {
      const { series } = await currentChart(page, "Load");
      const [firstValues = [], , top = []] = keys.map((key) => series[key]);
      const sums = top.map((_, k) =>
        keys.reduce((sum, key) => sum + (unstacked[key]?.[k] ?? 0), 0),
      );
      const matchesSums = (values: (number | null)[]) => {
        const numbers = values.flatMap((value, k) => (value === null ? [] : [{ value, k }]));
        const isAll = numbers.every(({ value, k }) => Math.abs(value - (sums[k] ?? 0)) < 1e-9);
        return numbers.length > 100 && isAll;
      };
      return matchesSums(top) || matchesSums(firstValues);
    })
    .toBe(true);
  await chooseFromMenu(page, "Load", "Stacked areas");
  await expect(page).not.toHaveURL(/stacked/);

  const texts = await textsDrawnDuring(page, () =>
    chooseFromMenu(page, "Load", "Logarithmic axis"),
  );
  await expect(page).toHaveURL(/log\.load=1/);
  expect(texts).toContain("0.1");
  expect(texts).toContain("10");
});

test("the shares of the processor are drawn up to 100 %", async ({ page }) => {
  await page.goto(SIX_HOURS);
  await drawnChart(page, "CPU");
  const texts = await textsDrawnDuring(page, () => chooseFromMenu(page, "CPU", "Stacked areas"));
  expect(texts).toContain("100 %");
  expect(texts).not.toContain("120 %");
});

test("the legend shows min and max of a slot beside its average", async ({ page, daemon }) => {
  const metric = "system_load_1m";
  const tags = `host=${HOST}`;
  await page.goto(`/explore?metric=${metric}&tags=${tags}&resolution=5m&range=6h`);
  const { times } = await drawnChart(page, metric);
  const { at, middle } = await boxOf(areaOf(page, metric));
  await page.mouse.move(at(0.9), middle);
  await nextFrame(page);
  const answer = await daemon.chart({
    metric,
    tags,
    resolution: "5m",
    start: String(times[0]),
    end: String((times.at(-1) ?? 0) + 1),
    display: "avg,min,max",
  });
  const shown = async (part: string) =>
    (await chartOf(page, metric).locator(part).textContent())?.split(" – ").map(Number);
  const [average = NaN] = (await shown(".legend-value")) ?? [];
  const [least = NaN, greatest = NaN] = (await shown(".legend-band")) ?? [];
  const points = (display: string) =>
    answer.series.find((series) => series.display === display)?.points.map(([, value]) => value);
  const index = await pointedIndex(page, metric);
  for (const [display, shown] of Object.entries({ avg: average, min: least, max: greatest }))
    expect(shown, display).toBeCloseTo(points(display)?.[index] ?? NaN, 3);
  expect(least).toBeLessThan(greatest);
});

test("a chart fills the screen until Escape is pressed", async ({ page }) => {
  await page.goto(SIX_HOURS);
  const boxBefore = await boxOf(chartOf(page, "Load"));
  await chartOf(page, "Load").getByRole("button", { name: "Full screen" }).click();
  await expect(page).toHaveURL(/full=load/);
  await expect
    .poll(async () => (await chartOf(page, "Load").boundingBox())?.width ?? 0)
    .toBeGreaterThan(1400);
  await page.keyboard.press("Escape");
  await expect(page).not.toHaveURL(/full=/);
  await expect
    .poll(async () => (await chartOf(page, "Load").boundingBox())?.width)
    .toBe(boxBefore.width);
});

test("a saved table contains the drawn values", async ({ page }) => {
  await page.goto(SIX_HOURS);
  const { times, series } = await drawnChart(page, "Load");
  const downloadEvent = page.waitForEvent("download");
  await chooseFromMenu(page, "Load", "Save as CSV");
  const download = await downloadEvent;
  expect(download.suggestedFilename()).toBe("load.csv");
  const text = await readAll(download.createReadStream());
  const [header = "", ...rows] = text.toString("utf8").trimEnd().split("\r\n");
  expect(header.startsWith("time,")).toBe(true);
  const fields = rows.map((row) => row.split(","));
  expect(fields.map(([time]) => Date.parse(time ?? ""))).toEqual(times);
  Object.values(series).forEach((values, k) => {
    const column = fields.map((row) => (row[k + 1] === "" ? null : Number(row[k + 1])));
    expect(column).toEqual(values);
  });
  expect(header.match(/system_load_\d+m/g)).toHaveLength(Object.keys(series).length);
});

async function readAll(stream: Promise<AsyncIterable<Buffer>>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of await stream) parts.push(part);
  return Buffer.concat(parts);
}

/** Counts a chart's opaque pixels, and those that a saved picture has at the expected place. */
async function comparePicture(page: Page, picture: Buffer) {
  return page.evaluate(async (base64) => {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const picture = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const canvas = document.querySelector<HTMLCanvasElement>("[data-chart=Load] .uplot canvas");
    if (!canvas) throw new Error("no canvas");
    const pixels = (source: CanvasImageSource, width: number, height: number) => {
      const ctx = new OffscreenCanvas(width, height).getContext("2d");
      ctx?.drawImage(source, 0, 0);
      return new Uint32Array(ctx?.getImageData(0, 0, width, height).data.buffer ?? []);
    };
    const chartPixels = pixels(canvas, canvas.width, canvas.height);
    const savedPixels = pixels(picture, picture.width, picture.height);
    const [left, top] = [16 * devicePixelRatio, 56 * devicePixelRatio];
    let [opaque, equal] = [0, 0];
    chartPixels.forEach((pixel, k) => {
      if (pixel >>> 24 < 255) return;
      opaque += 1;
      const [x, y] = [k % canvas.width, Math.floor(k / canvas.width)];
      if (savedPixels[(y + top) * picture.width + x + left] === pixel) equal += 1;
    });
    return { opaque, same: equal, isLarger: picture.height > canvas.height };
  }, picture.toString("base64"));
}

test("a saved picture contains the drawn pixels", async ({ page }) => {
  await page.goto(SIX_HOURS);
  await drawnChart(page, "Load");
  // A new slot or threshold may redraw the chart in between.
  await expect(async () => {
    const downloadEvent = page.waitForEvent("download");
    await chooseFromMenu(page, "Load", "Save as PNG");
    const comparison = await comparePicture(
      page,
      await readAll((await downloadEvent).createReadStream()),
    );
    expect(comparison.opaque).toBeGreaterThan(500);
    expect(comparison.same).toBe(comparison.opaque);
    expect(comparison.isLarger).toBe(true);
  }).toPass();
});
