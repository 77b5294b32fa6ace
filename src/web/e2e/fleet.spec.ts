/** The fleet view with the number of hosts of a large fleet. */
import type { Page } from "@playwright/test";
import type { Ping } from "./support/daemon";
import { HOST, hostSamples, NOW, ping } from "./support/data";
import { eventually } from "./support/eventually";
import { expect, test } from "./support/test";
import { MINUTE } from "./support/zones";

const HOSTS = 5000;

function hostName(k: number): string {
  return `node-${String(k).padStart(4, "0")}`;
}

/** Each of four roles has a quarter of the hosts. */
const ROLES = ["web", "db", "cache", "queue"] as const;

function fleetPings(): Ping[] {
  return Array.from({ length: HOSTS }, (_, k) =>
    ping(hostName(k), {
      version: k % 10 === 0 ? "0.0.9" : "0.1.0",
      booted: NOW - (k + 1) * MINUTE,
      tags: { role: ROLES[k % ROLES.length] ?? "web", rack: `r${k % 50}` },
    }),
  );
}

const grid = (page: Page) => page.getByRole("grid", { name: "Hosts" });
/** Returns the names of the drawn hosts, from the top. */
async function shownHosts(page: Page): Promise<string[]> {
  const rows = grid(page)
    .getByRole("row")
    .filter({ has: page.getByRole("rowheader") });
  const found = await rows.evaluateAll((rows) =>
    rows
      .map((row) => ({
        index: Number(row.getAttribute("aria-rowindex")),
        name: row.querySelector("[role=rowheader]")?.textContent ?? "",
      }))
      .sort((a, b) => a.index - b.index)
      .map(({ name }) => name),
  );
  return found;
}

test.describe("a fleet of 5,000 hosts", () => {
  test.beforeEach(async ({ page, startDaemon }) => {
    const daemon = await startDaemon();
    await daemon.postSamples(hostSamples(hostName(7), 1, 0));
    await daemon.postPings(fleetPings());
    await page.goto(daemon.url);
    await expect(grid(page)).toHaveAttribute("aria-rowcount", String(HOSTS + 1));
  });

  test("is searched, filtered and sorted with few rows in the document", async ({ page }) => {
    expect((await shownHosts(page)).length).toBeLessThan(80);
    await expect(page.getByText("5,000 hosts").first()).toBeVisible();

    const search = page.getByRole("searchbox", { name: "Search hosts" });
    await search.fill("node-123");
    await expect(grid(page)).toHaveAttribute("aria-rowcount", "11");
    expect(await shownHosts(page)).toEqual(
      Array.from({ length: 10 }, (_, k) => hostName(1230 + k)),
    );
    await search.fill("");

    await page.getByRole("button", { name: /^role=db/ }).click();
    await expect(grid(page)).toHaveAttribute("aria-rowcount", String(HOSTS / 4 + 1));
    expect((await shownHosts(page)).slice(0, 3)).toEqual([hostName(1), hostName(5), hostName(9)]);
    await expect(page).toHaveURL(/tags=role%3Ddb/);
    await page.reload();
    await expect(grid(page)).toHaveAttribute("aria-rowcount", String(HOSTS / 4 + 1));

    await grid(page).getByRole("button", { name: "Host" }).click();
    await expect.poll(async () => (await shownHosts(page))[0]).toBe(hostName(1));
    await grid(page).getByRole("button", { name: "Host" }).click();
    await expect.poll(async () => (await shownHosts(page))[0]).toBe(hostName(4997));
    await page.mouse.move(5, 5);
  });

  test("scrolls to its last host with rows drawn at each step", async ({ page }) => {
    await grid(page).getByRole("button", { name: "Host" }).click();
    await page.mouse.move(720, 600);
    for (let step = 0; step < 20; step++) {
      await page.mouse.wheel(0, 1500);
      await eventually("rows fill the window", () =>
        page.evaluate(() => {
          const rows = [...document.querySelectorAll("[role=grid] [role=row]")];
          const tops = rows.map((row) => row.getBoundingClientRect());
          const hasRowAt = (y: number) => tops.some(({ top, bottom }) => top <= y && bottom > y);
          return hasRowAt(innerHeight - 60) && hasRowAt(innerHeight / 2);
        }),
      );
    }
    await grid(page).focus();
    await page.keyboard.press("End");
    await expect(page.getByRole("link", { name: hostName(4999), exact: true })).toBeVisible();
    await page.keyboard.press("Enter");
    await expect(page).toHaveURL(new RegExp(`/hosts/${hostName(4999)}$`));
  });
});

test("only long names are cut off in the fleet", async ({ page, startDaemon }) => {
  const daemon = await startDaemon();
  const uptimes = [11 * 60 + 40, 23 * 60 + 59, 29 * 1440 + 23 * 60, 700 * 1440, 47];
  const pings = uptimes.map((minutes, k) =>
    ping(hostName(k), { booted: NOW - minutes * MINUTE, version: "10.12.13" }),
  );
  await daemon.postPings(pings);
  for (const width of [1440, 1366, 1280]) {
    await page.setViewportSize({ width, height: 900 });
    await page.goto(daemon.url);
    await expect.poll(() => shownHosts(page)).toHaveLength(pings.length);
    const cutTexts = await grid(page)
      .locator(".cell:not(.col-host, .col-filesystem, .col-menu)")
      .evaluateAll((cells) =>
        cells
          .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth && clientWidth > 0)
          .map(({ textContent }) => textContent),
      );
    expect(cutTexts, `at ${width}`).toEqual([]);
  }
});

test("the order does not change under the mouse, and a note says when it is outdated", async ({
  page,
  startDaemon,
}) => {
  const daemon = await startDaemon();
  const pings = ["a", "b", "c"];
  await daemon.postPings(
    pings.map((host, k) => ping(host, { booted: NOW - (k + 1) * 60 * MINUTE })),
  );
  await page.goto(`${daemon.url}/?sort=uptime`);
  await expect.poll(() => shownHosts(page)).toEqual(["a", "b", "c"]);
  await page.getByRole("link", { name: "b", exact: true }).hover();
  // Host a now has the longest uptime.
  await daemon.postPings([ping("a", { booted: NOW - 600 * MINUTE, sent: Date.now() })]);
  await expect(page.getByText("Order is outdated")).toBeVisible({ timeout: 20_000 });
  expect(await shownHosts(page)).toEqual(["a", "b", "c"]);
  await page.mouse.move(5, 5);
  await expect.poll(() => shownHosts(page)).toEqual(["b", "c", "a"]);
});

test("a click anywhere on a row opens its host, except on its alerts and menu", async ({
  page,
  startDaemon,
}) => {
  const daemon = await startDaemon();
  await daemon.postSamples(hostSamples(HOST, 1, 0));
  await daemon.postPings([ping(HOST)]);
  const row = grid(page).getByRole("row").filter({ hasText: HOST });
  // The link's title has the texts of the titles that it covers.
  await page.goto(daemon.url);
  const missing = "No samples in the last hour: Disk";
  await expect(row.getByRole("link", { name: HOST, exact: true })).toHaveAttribute(
    "title",
    `${HOST}\nenv=prod\n${missing}`,
    { timeout: 20_000 },
  );
  for (const { width, cell } of [
    { width: 1440, cell: ".col-uptime" },
    { width: 1440, cell: ".col-cpu" },
    { width: 390, cell: ".col-memory" },
  ]) {
    await page.setViewportSize({ width, height: 900 });
    await page.goto(daemon.url);
    const box = await row.locator(cell).boundingBox();
    if (!box) throw new Error(`${cell} is not drawn`);
    await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
    await expect(page, cell).toHaveURL(new RegExp(`/hosts/${HOST}$`));
  }
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.goto(daemon.url);
  await row.getByRole("button", { name: `Menu of ${HOST}` }).click();
  await expect(page.getByRole("menuitem", { name: "Open charts" })).toBeFocused();
  await page.keyboard.press("Escape");
  const alerts = row.getByRole("link", { name: `Alerts of ${HOST}` });
  await expect(alerts).toBeVisible({ timeout: 20_000 });
  await alerts.click();
  await expect(page).toHaveURL(/\/alerts\?q=host/);
});
