/** What moved? From a stretch of a chart to the series that changed in it. */
import type { Daemon, Sample } from "./support/daemon";
import { NOW } from "./support/data";
import { openSettled } from "./support/settled";
import { expect, test } from "./support/test";
import { HOUR, MINUTE } from "./support/zones";

const START = NOW - 30 * MINUTE;

/** Sends two hours of a database and a web server; on the database, queries pile up since `START`. */
async function postIncident(daemon: Daemon): Promise<void> {
  const samples: Sample[] = [];
  for (const host of ["db", "web"]) {
    for (let time = NOW - 2 * HOUR; time < NOW; time += MINUTE) {
      const isLater = host === "db" && time >= START;
      const noise = ((time / MINUTE) * 7) % 5;
      const gauge = (metric: string, value: number, unit = "") =>
        samples.push({ metric, tags: { host }, unit, time, value });
      gauge("queries_running", isLater ? 80 + noise : 4 + noise);
      gauge("cache_bytes", isLater ? 2 ** 28 : 2 ** 30, "bytes");
      gauge("room_temperature", 20 + noise);
      if (isLater) gauge("deadlocks", 3);
    }
  }
  await daemon.postSamples(samples);
}

test("a stretch dragged with Alt ranks the series of the host, and each leads to its chart", async ({
  page,
  startDaemon,
}) => {
  const daemon = await startDaemon();
  await postIncident(daemon);
  // Not the last hour: the stretch would begin later in a run that starts later.
  const hour = `start=${NOW - HOUR}&end=${NOW}&resolution=1m`;
  await openSettled(page, `${daemon.url}/explore?metric=queries_running&tags=host=db&${hour}`);
  const plot = page.locator(".plot-over").first();
  const box = await plot.boundingBox();
  if (!box) throw new Error("no plot");
  await page.keyboard.down("Alt");
  await page.mouse.move(box.x + box.width * 0.49, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.95, box.y + box.height / 2, { steps: 4 });
  await page.mouse.up();
  await page.keyboard.up("Alt");
  await expect(page).toHaveURL(/\/moved\?tags=host%3Ddb&metric=queries_running/);
  const tiles = page.getByRole("list").getByRole("link");
  await expect(tiles).toHaveCount(3);
  await expect(page.getByRole("status")).toContainText("3 of 4 series moved");
  await expect(tiles.first()).toContainText("cache_bytes");
  // The stretch begins a minute before the incident.
  await expect(tiles.first()).toContainText(/1 GiB→ to 2\d\d[.\d]* MiB−7\d %/);
  await expect(tiles.filter({ hasText: "queries_running" })).toContainText("× 1");
  await expect(tiles.filter({ hasText: "deadlocks" })).toContainText("began");

  // The same metric on all hosts, then all series.
  await page.getByRole("button", { name: "queries_running" }).click();
  await expect(page.getByRole("status")).toContainText("1 of 2 series moved");
  await page.getByRole("button", { name: "All series" }).click();
  // The eighth is the target of an SLO, when its rule was evaluated.
  await expect(page.getByRole("status")).toContainText(/3 of [78] series moved/);
  await tiles.first().click();
  await expect(page.getByRole("heading", { name: "Explore" })).toBeVisible();
  await expect(page.locator("[data-chart]")).toBeVisible();
});

test("the window of a chart and of a host leads to what moved", async ({
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(/Failed to load resource/);
  const daemon = await startDaemon();
  await postIncident(daemon);
  const url = `${daemon.url}/explore?metric=queries_running&start=${START}&end=${NOW}&resolution=1m`;
  await openSettled(page, url);
  const chart = page.locator("[data-chart]");
  await chart.getByRole("button", { name: "More" }).click();
  await page.getByRole("menuitem", { name: "What moved?" }).click();
  await expect(page.getByRole("status")).toContainText("1 of 2 series moved in these 30 min");

  await openSettled(page, url);
  await page.locator(".plot-over").press("m");
  await expect(page.getByRole("heading", { name: "What moved?" })).toBeVisible();

  await openSettled(page, `${daemon.url}/hosts/db?start=${START}&end=${NOW}&resolution=1m`);
  await page.getByRole("link", { name: "What moved?" }).click();
  await expect(page.getByRole("status")).toContainText("3 of 4 series moved");

  // A stretch without slots is refused with the reason.
  await openSettled(page, `${daemon.url}/moved?start=${NOW - MINUTE}&end=${NOW}&resolution=1m`);
  await expect(page.getByRole("alert")).toContainText("each needs 3: choose a longer");
});
