/** Processes behind a hot minute: the charts of a host name them at the pointer. */
import type { Page } from "@playwright/test";
import { areaOf, boxOf, chartOf } from "./support/charts";
import type { Sample } from "./support/daemon";
import { currentMinute, HOST, hostSamples, ping } from "./support/data";
import { drawnChart } from "./support/drawn";
import { eventually } from "./support/eventually";
import { expect, test } from "./support/test";
import { MINUTE } from "./support/zones";

/** The minutes before now in which a backup uses CPU, memory and I/O. */
const HOT = { from: 25, to: 35 };

function processSamples(): Sample[] {
  const now = currentMinute();
  return Array.from({ length: 60 }, (_, k) => {
    const time = now - (k + 1) * MINUTE;
    const isHot = k >= HOT.from && k < HOT.to;
    const delta = (metric: string, process: string, unit: string, value: number): Sample => {
      return { metric, tags: { host: HOST, process }, kind: "delta", unit, time, value };
    };
    const memory = (process: string, value: number): Sample => {
      const tags = { host: HOST, process };
      return { metric: "process_top_memory_resident", tags, unit: "bytes", time, value };
    };
    const usual = [
      delta("process_top_cpu", "mongod", "seconds", 12),
      memory("mongod", 2 * 2 ** 30),
    ];
    const backup = [
      delta("process_top_cpu", "pg_dump", "seconds", 51),
      delta("process_top_io", "pg_dump", "bytes", 60 * 2 ** 20),
      memory("pg_dump", 3 * 2 ** 30),
    ];
    return isHot ? [...usual, ...backup] : usual;
  }).flat();
}

async function pointAt(page: Page, title: string, minutesAgo: number): Promise<void> {
  await drawnChart(page, title);
  const { at, middle } = await boxOf(areaOf(page, title));
  await page.mouse.move(at(1 - minutesAgo / 60), middle);
}

test("the pointer on a host's chart names the processes of that minute", async ({
  page,
  startDaemon,
}) => {
  const daemon = await startDaemon();
  await daemon.postSamples([...hostSamples(HOST, 2, 0), ...processSamples()]);
  await daemon.postPings([ping(HOST)]);
  await page.goto(`${daemon.url}/hosts/${HOST}?resolution=1m&range=1h`);
  await drawnChart(page, "CPU of processes");
  const tip = (title: string) => chartOf(page, title).locator(".plot-tip");
  await pointAt(page, "CPU", 30);
  await expect(tip("CPU")).toContainText("CPU of processes: pg_dump 85 %, mongod 20 %");
  // The box is not under the controls, which stay visible above the charts.
  const controls = await page.locator(".time-controls").boundingBox();
  const top = async () => (await tip("CPU").boundingBox())?.y ?? 0;
  expect(await top()).toBeGreaterThanOrEqual(controls ? controls.y + controls.height : Infinity);
  await pointAt(page, "CPU", 50);
  await expect(tip("CPU")).toContainText("CPU of processes: mongod 20 %");
  await expect(tip("CPU")).not.toContainText("pg_dump");
  await pointAt(page, "Memory used", 30);
  // The chart of the processes, far below, is loaded for it while the pointer rests.
  await expect(tip("Memory used")).toContainText(
    "Memory of processes: pg_dump 3 GiB, mongod 2 GiB",
  );
  await chartOf(page, "I/O of processes").scrollIntoViewIfNeeded();
  await drawnChart(page, "I/O of processes");

  // The keyboard reads the same aloud.
  await page.mouse.move(5, 5);
  await areaOf(page, "CPU").focus();
  // The newest slots have no samples yet.
  for (let k = 0; k < 6; k++) await page.keyboard.press("ArrowLeft");
  await expect(chartOf(page, "CPU").locator("[aria-live]")).toContainText(
    "CPU of processes: mongod 20 %",
  );
});

test("a real agent sends the processes that use the most", async ({ page, startDaemon }) => {
  const daemon = await startDaemon();
  await daemon.sampleThisMachine("real");
  await eventually("the agent sends processes", async () => {
    const path = "/api/v1/series?tags=host=real&metric=process_top_memory_resident";
    return ((await daemon.request(path)) as { total: number }).total > 0;
  });
  await page.goto(`${daemon.url}/hosts/real?resolution=1m&range=1h`);
  await chartOf(page, "Memory of processes").scrollIntoViewIfNeeded();
  const { series } = await drawnChart(page, "Memory of processes");
  expect(Object.keys(series).length).toBeGreaterThan(0);
});
