/** Forecasts of file systems and memory: on the fleet, in a host's head, and as charts. */
import type { Page } from "@playwright/test";
import { chartOf } from "./support/charts";
import type { Daemon, Sample } from "./support/daemon";
import { ping } from "./support/data";
import { drawnChart } from "./support/drawn";
import { expect, test } from "./support/test";
import { DAY, HOUR, MINUTE } from "./support/zones";

const GIB = 2 ** 30;
const WEEKS = 21 * DAY;

/** Free bytes of each mount point, by the days that are left until now. */
const MOUNTS: Record<string, (daysLeft: number) => number> = {
  // Full in nine days, with noise that repeats in every run.
  "/data": (left) => (9 + left) * 2 * GIB + 3 * GIB * Math.sin(left * 1e6),
  "/boot": () => GIB / 2,
  // Read-only file systems, without free space and with a trend of an earlier time.
  "/snap/core": () => 0,
  "/media": (left) => (1 + left) * GIB,
  // No longer mounted.
  "/old": (left) => (left < 1 ? NaN : left * GIB),
};

/** Returns samples of three weeks up to now. */
function samples(host: string): Sample[] {
  const now = Math.floor(Date.now() / MINUTE) * MINUTE;
  const times = Array.from({ length: WEEKS / HOUR }, (_, k) => now - WEEKS + (k + 1) * HOUR);
  return times.flatMap((time) => {
    const left = (now - time) / DAY;
    const gauge = (metric: string, value: number, mount?: string): Sample[] => {
      const tags = mount === undefined ? { host } : { host, mount };
      return Number.isNaN(value) ? [] : [{ metric, tags, unit: "bytes", time, value }];
    };
    const isReadOnly = (mount: string) => Number(["/snap/core", "/media"].includes(mount));
    return [
      ...Object.entries(MOUNTS).flatMap(([mount, free]) => [
        ...gauge("disk_partition_space_free", free(left), mount),
        ...gauge("disk_partition_read_only", isReadOnly(mount), mount),
      ]),
      // A leak, which ends in four days; and what a host needs for its page.
      ...gauge("system_memory_available", (4 + left) * GIB + GIB * 0.5 * Math.sin(left * 1e6)),
      ...gauge("system_load_1m", 1),
    ];
  });
}

/** Returns the answer of the daemon in days. */
async function daysUntilFull(daemon: Daemon, quantile: number): Promise<number> {
  const query = `forecast_until(disk_partition_space_free{mount="/data"}[21d], 0, ${quantile})`;
  const answer = await fetch(`${daemon.url}/api/v1/query?query=${encodeURIComponent(query)}`);
  const { data } = (await answer.json()) as { data: { result: { value: [number, string] }[] } };
  return Number(data.result[0]?.value[1]) / 86_400;
}

/** Counts the requests of forecasts from now on. */
function countForecasts(page: Page): () => number {
  let count = 0;
  page.on("request", (request) => {
    if (request.url().includes("forecast_until")) count++;
  });
  return () => count;
}

test("a host shows when its file systems and memory run out, as the daemon forecasts", async ({
  page,
  startDaemon,
}) => {
  const daemon = await startDaemon();
  await daemon.postSamples(samples("web1"));
  await daemon.postPings([ping("web1")]);
  const count = countForecasts(page);
  await page.goto(`${daemon.url}/hosts/web1`);
  const facts = page.getByRole("list", { name: "Forecast" }).getByRole("listitem");
  const [early, median, late] = await Promise.all(
    [0.1, 0.5, 0.9].map(async (q) => Math.round(await daysUntilFull(daemon, q))),
  );
  expect(median).toBe(9);
  const range = early === late ? "" : ` (${early} to ${late})`;
  await expect(facts).toHaveText([
    /^Memory exhausted in 4 days/,
    `/data full in ${median} days${range}`,
  ]);

  // The free space until now, then the forecast with its band.
  const title = "Free on /data";
  await chartOf(page, title).scrollIntoViewIfNeeded();
  const { times, series } = await drawnChart(page, title);
  await expect(chartOf(page, title).locator(".legend-label")).toHaveText(["free", "forecast"]);
  const [free = [], forecast = []] = Object.values(series);
  const lastFree = free.findLastIndex((value) => value !== null);
  const firstForecast = forecast.findIndex((value) => value !== null);
  expect(firstForecast).toBe(lastFree);
  expect(forecast[firstForecast]).toBe(free[lastFree]);
  expect(times.at(-1)).toBeGreaterThan(Date.now() + 19 * DAY);
  const emptyAt = times[forecast.findIndex((value) => value === 0)] ?? NaN;
  const days = (emptyAt - Date.now()) / DAY;
  expect(days).toBeGreaterThan(median ?? NaN);
  expect(days).toBeLessThan((median ?? NaN) + 1.5);

  await page.getByRole("button", { name: "Refresh now" }).click();
  await drawnChart(page, "Load");
  expect(count()).toBe(1);
});

test("the fleet shows and sorts the hosts that are full first, with one request", async ({
  page,
  startDaemon,
}) => {
  const daemon = await startDaemon();
  await daemon.postSamples(samples("web2"));
  await daemon.postPings(["web1", "web2", "web3"].map((host) => ping(host)));
  const count = countForecasts(page);
  await page.goto(daemon.url);
  const row = page.getByRole("row").filter({ hasText: "web2" });
  const cell = row.locator(".col-full");
  await expect(cell).toHaveText("9 d");
  await expect(cell).toHaveAttribute("title", /^\/data full in 9 days/);
  await page.getByRole("columnheader").getByRole("button", { name: "Full in" }).click();
  await expect(page).toHaveURL(/sort=full/);
  await expect(page.getByRole("rowheader")).toHaveText(["web2", "web1", "web3"]);
  expect(count()).toBe(1);
});
