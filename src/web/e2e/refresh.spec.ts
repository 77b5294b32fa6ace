/** A chart that refreshes while the reader uses it. */
import { nextChartRequest } from "./support/asked";
import { areaOf, boxOf, chartOf, nextFrame } from "./support/charts";
import { HOST } from "./support/data";
import { drawnChart } from "./support/drawn";
import { expect, test } from "./support/test";
import { MINUTE } from "./support/zones";

/** The observed state of a chart, by frame. */
interface Observed {
  canvas: HTMLCanvasElement;
  card: Element;
  frames: number;
  removed: number;
  empty: number;
  moved: number;
}

test("the fleet requests its sparklines once for each minute", async ({ page }) => {
  const start = Date.now();
  await page.clock.install({ time: start });
  let passed = 0;
  // The page corrects its clock by the daemon's, which here must run as fast as the page's.
  await page.route("**/api/**", async (route) => {
    const response = await route.fetch();
    const date = new Date(start + passed).toUTCString();
    await route.fulfill({ response, headers: { ...response.headers(), date } });
  });
  let requests = 0;
  page.on("request", (request) => {
    if (request.url().endsWith("/sparklines")) requests += 1;
  });
  await page.goto("/");
  await expect(page.getByRole("grid", { name: "Hosts" })).toBeVisible();
  // In steps, so that the daemon answers health checks in time.
  for (; passed < 3 * MINUTE; passed += 1000) await page.clock.runFor(1000);
  expect(requests).toBeGreaterThanOrEqual(3);
  // The page's time passes while an answer is under way, so that it may ask twice for a minute.
  // With each list of hosts it would ask 18 times.
  expect(requests).toBeLessThanOrEqual(8);
});

test("a refresh moves nothing under the mouse and keeps the canvas", async ({ page }) => {
  await page.goto(`/hosts/${HOST}?resolution=1m&range=1h`);
  await drawnChart(page, "Load");
  const { at, middle } = await boxOf(areaOf(page, "Load"));
  await page.mouse.move(at(0.3), middle);
  await nextFrame(page);
  await page.evaluate(() => {
    const card = document.querySelector("[data-chart=Load]");
    const canvas = card?.querySelector<HTMLCanvasElement>(".uplot canvas");
    if (!card || !canvas) throw new Error("no chart");
    const canvasCopy = new OffscreenCanvas(canvas.width, canvas.height);
    const copyContext = canvasCopy.getContext("2d", { willReadFrequently: true });
    const seen: Observed = { canvas, card, frames: 0, removed: 0, empty: 0, moved: 0 };
    Object.assign(window, { seen });
    new MutationObserver((changes) => {
      for (const change of changes) {
        for (const node of change.removedNodes) if (node instanceof Element) seen.removed += 1;
      }
    }).observe(card, { childList: true, subtree: true });
    const line = card.querySelector(".plot-line");
    const lineLeft = line?.getBoundingClientRect().left;
    const observeFrame = () => {
      seen.frames += 1;
      if (line?.getBoundingClientRect().left !== lineLeft) seen.moved += 1;
      // Only one frame in ten is read: reading pixels is slow.
      if (seen.frames % 10 === 0 && copyContext) {
        copyContext.clearRect(0, 0, canvasCopy.width, canvasCopy.height);
        copyContext.drawImage(canvas, 0, 0);
        const { data } = copyContext.getImageData(0, canvasCopy.height / 2, canvasCopy.width, 40);
        if (data.every((part) => part === 0)) seen.empty += 1;
      }
      requestAnimationFrame(observeFrame);
    };
    observeFrame();
  });
  const shown = await chartOf(page, "Load").locator(".chart-time").textContent();
  for (let k = 0; k < 2; k++) await nextChartRequest(page);
  await nextFrame(page);
  const seen = await page.evaluate(() => {
    const { canvas, card, frames, removed, empty, moved } = (
      window as unknown as { seen: Observed }
    ).seen;
    return { isSame: canvas.isConnected && card.isConnected, frames, removed, empty, moved };
  });
  expect(seen).toMatchObject({ isSame: true, removed: 0, empty: 0, moved: 0 });
  expect(seen.frames).toBeGreaterThan(50);
  expect(await chartOf(page, "Load").locator(".chart-time").textContent()).toBe(shown);
});
