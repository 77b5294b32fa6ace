/** Outages while the page is open: the daemon dies, hangs or is upgraded, then answers again. */
import type { Page } from "@playwright/test";
import { expect, test } from "./support/test";

/** The time within which the page notices the start and the end of an outage. */
const WITHIN_3_S = { timeout: 3000 };

const outageNotice = (page: Page) =>
  page.getByRole("alert").filter({ hasText: "The daemon has not answered" });
const heading = (page: Page, name: string) => page.getByRole("heading", { name, exact: true });

/** Errors that the browser itself logs during these tests. */
const CONNECTION_ERRORS = /ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/;

test("an outage is noticed within three seconds, and the page recovers automatically", async ({
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(CONNECTION_ERRORS);
  const daemon = await startDaemon();
  // This view sends no request for half a minute.
  await page.goto(`${daemon.url}/dashboards`);
  await expect(heading(page, "Dashboards")).toBeVisible();
  await page.evaluate(() => (window.kept = true));
  await expect(outageNotice(page)).toBeHidden();

  await daemon.kill();
  await expect(outageNotice(page)).toBeVisible(WITHIN_3_S);

  await daemon.run();
  await expect(outageNotice(page)).toBeHidden(WITHIN_3_S);
  expect(await page.evaluate(() => window.kept)).toBe(true);
});

test("a hanging daemon and a proxy's error are noticed within three seconds", async ({
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(/Failed to load resource/);
  const daemon = await startDaemon();
  await page.goto(`${daemon.url}/alerts`);
  await expect(heading(page, "Alerts")).toBeVisible();
  daemon.pause();
  await expect(outageNotice(page)).toBeVisible(WITHIN_3_S);
  daemon.resume();
  await expect(outageNotice(page)).toBeHidden(WITHIN_3_S);

  await page.route("**/*", (route) =>
    route.fulfill({ status: 502, contentType: "text/html", body: "<h1>Bad gateway</h1>" }),
  );
  await expect(outageNotice(page)).toBeVisible(WITHIN_3_S);
  await page.unroute("**/*");
  await expect(outageNotice(page)).toBeHidden(WITHIN_3_S);
});

test("a view first opened during an outage appears automatically after it", async ({
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(CONNECTION_ERRORS, /Failed to load resource/);
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

test("a view with missing files is retried by a button, then by a reload", async ({
  page,
  daemon,
  watch,
}) => {
  watch.permit(/Failed to load resource/);
  await page.goto("/dashboards");
  await expect(heading(page, "Dashboards")).toBeVisible();
  await page.evaluate(() => (window.kept = true));
  let requests = 0;
  await page.route("**/assets/storage-*.js*", (route) => {
    requests += 1;
    return route.fulfill({ status: 404, body: "" });
  });
  await page.getByRole("link", { name: "Storage" }).click();
  await expect(page.getByText("This part of the page could not be loaded")).toBeVisible();
  const before = requests;
  await page.getByRole("button", { name: "Retry" }).click();
  await expect.poll(() => requests).toBeGreaterThan(before);
  // The page stops retrying these files after the third attempt.
  await expect.poll(() => page.evaluate(() => window.kept).catch(() => true)).toBeUndefined();
  await page.unroute("**/assets/storage-*.js*");
  await expect(heading(page, "Storage")).toBeVisible({ timeout: 20_000 });
  expect(page.url()).toBe(`${daemon.url}/storage`);
});
