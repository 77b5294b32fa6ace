/** The page of a daemon with access control, used with a key. */
import { ACCESS, firstKey } from "./support/access";
import { expect, test } from "./support/test";

test("the page asks for a key once, keeps it for the tab, and forgets it", async ({
  context,
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(/Failed to load resource/);
  const daemon = await startDaemon(ACCESS);
  const key = await firstKey(daemon);
  await page.goto(`${daemon.url}/dashboards`);
  await page.getByRole("button", { name: "Use a key" }).click();
  const field = page.getByLabel("Key", { exact: true });
  await expect(page.getByRole("heading", { name: "Key required" })).toBeVisible();
  await field.fill(`${key}0`);
  await page.getByRole("button", { name: "Use key" }).click();
  await expect(page.getByText("the key is not valid")).toBeVisible();
  await field.fill(key);
  await field.press("Enter");
  await expect(page.getByRole("heading", { name: "Dashboards", level: 1 })).toBeVisible();
  // The key stays for this tab, and other tabs do not have it.
  await page.reload();
  await expect(page.getByRole("heading", { name: "Dashboards", level: 1 })).toBeVisible();
  const other = await context.newPage();
  await other.goto(`${daemon.url}/status`);
  await expect(other.getByRole("heading", { name: "Log in" })).toBeVisible();
  await page.getByRole("link", { name: "Status", exact: true }).click();
  await expect(page.getByRole("heading", { name: "Status", level: 1 })).toBeVisible();
  await page.getByRole("button", { name: "Forget key" }).click();
  await expect(page.getByRole("heading", { name: "Log in" })).toBeVisible();
  const stored = await page.evaluate(() =>
    JSON.stringify([Object.entries(sessionStorage), Object.entries(localStorage)]),
  );
  expect(stored).not.toContain("gry_");
});
