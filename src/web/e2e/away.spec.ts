/** A daemon that dies, hangs or is upgraded while the page is open, and comes back. */
import type { Page } from "@playwright/test";
import { expect, test } from "./support/test";

/** Within this time the page says that the daemon is away, and that it is back. */
const SEEN = { timeout: 3000 };

const away = (page: Page) =>
  page.getByRole("alert").filter({ hasText: "The daemon has not answered" });
const heading = (page: Page, name: string) => page.getByRole("heading", { name, exact: true });

/** The browser's own words for what a test brings about. */
const REFUSED = /ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/;

test("a killed daemon is missed within three seconds; the page goes on by itself", async ({
  page,
  startDaemon,
  watch,
}) => {
  watch.excuse(REFUSED);
  const daemon = await startDaemon();
  // A view that asks for nothing for half a minute.
  await page.goto(`${daemon.url}/dashboards`);
  await expect(heading(page, "Dashboards")).toBeVisible();
  await page.evaluate(() => (window.kept = true));
  await expect(away(page)).toBeHidden();

  await daemon.kill();
  await expect(away(page)).toBeVisible(SEEN);

  await daemon.run();
  await expect(away(page)).toBeHidden(SEEN);
  expect(await page.evaluate(() => window.kept)).toBe(true);
});

test("a daemon that hangs is missed within three seconds, and so is one behind a proxy", async ({
  page,
  startDaemon,
  watch,
}) => {
  watch.excuse(/Failed to load resource/);
  const daemon = await startDaemon();
  await page.goto(`${daemon.url}/alerts`);
  await expect(heading(page, "Alerts")).toBeVisible();
  daemon.pause();
  await expect(away(page)).toBeVisible(SEEN);
  daemon.resume();
  await expect(away(page)).toBeHidden(SEEN);

  await page.route("**/*", (route) =>
    route.fulfill({ status: 502, contentType: "text/html", body: "<h1>Bad gateway</h1>" }),
  );
  await expect(away(page)).toBeVisible(SEEN);
  await page.unroute("**/*");
  await expect(away(page)).toBeHidden(SEEN);
});

test("a view that is first opened during an outage is there after it, by itself", async ({
  page,
  startDaemon,
  watch,
}) => {
  watch.excuse(REFUSED, /Failed to load resource/);
  const daemon = await startDaemon();
  await page.goto(`${daemon.url}/dashboards`);
  await expect(heading(page, "Dashboards")).toBeVisible();
  await page.evaluate(() => (window.kept = true));
  await daemon.kill();
  await page.getByRole("link", { name: "Status" }).click();
  await expect(page.getByText("This part of the page loads as soon as")).toBeVisible();
  await expect(page.getByRole("button", { name: "Retry" })).toBeVisible();

  await daemon.run();
  await expect(page.getByText("Serving, with warnings")).toBeVisible({ timeout: 6000 });
  expect(await page.evaluate(() => window.kept)).toBe(true);
});

test("a view whose files are gone is tried again by a button, then in a page that is loaded anew", async ({
  page,
  daemon,
  watch,
}) => {
  watch.excuse(/Failed to load resource/);
  await page.goto("/dashboards");
  await expect(heading(page, "Dashboards")).toBeVisible();
  await page.evaluate(() => (window.kept = true));
  let asked = 0;
  await page.route("**/assets/storage-*.js*", (route) => {
    asked += 1;
    return route.fulfill({ status: 404, body: "" });
  });
  await page.getByRole("link", { name: "Storage" }).click();
  await expect(page.getByText("This part of the page could not be loaded")).toBeVisible();
  const before = asked;
  await page.getByRole("button", { name: "Retry" }).click();
  await expect.poll(() => asked).toBeGreaterThan(before);
  // It gives up on these files after the third time.
  await expect.poll(() => page.evaluate(() => window.kept).catch(() => true)).toBeUndefined();
  await page.unroute("**/assets/storage-*.js*");
  await expect(heading(page, "Storage")).toBeVisible({ timeout: 20_000 });
  expect(page.url()).toBe(`${daemon.url}/storage`);
});
