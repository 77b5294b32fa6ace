/** The page of a daemon with access control. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "./support/test";

test("the page asks for a key once, keeps it for the tab, and forgets it", async ({
  context,
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(/Failed to load resource/);
  const daemon = await startDaemon({ "granary.toml": "[security]\naccess = true\n" });
  const key = (await readFile(join(daemon.folder, "data", "first-key"), "utf8")).trim();
  await page.goto(`${daemon.url}/dashboards`);
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
  await expect(other.getByRole("heading", { name: "Key required" })).toBeVisible();
  await page.getByRole("link", { name: "Status", exact: true }).click();
  await expect(page.getByRole("heading", { name: "Status", level: 1 })).toBeVisible();
  await page.getByRole("button", { name: "Forget key" }).click();
  await expect(page.getByRole("heading", { name: "Key required" })).toBeVisible();
  const stored = await page.evaluate(() =>
    JSON.stringify([Object.entries(sessionStorage), Object.entries(localStorage)]),
  );
  expect(stored).not.toContain("gry_");
});
