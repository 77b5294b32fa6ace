/** The audit on the page. */
import { ACCESS, addUser, fillLogin } from "./support/access";
import { expect, test } from "./support/test";

test("the audit shows who did what, newest first, by name and by page", async ({
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(/Failed to load resource/);
  const daemon = await startDaemon(ACCESS);
  await addUser(daemon, "root", { "*": "admin" });
  const notes = Array.from({ length: 120 }, (_, k) => ({ time: Date.now(), text: `note ${k}` }));
  for (const note of notes) await daemon.post("/api/v1/annotations", note);
  await page.goto(`${daemon.url}/access?show=audit`);
  await fillLogin(page, "root");
  const table = page.getByRole("region", { name: "Audit" }).locator("tbody tr");
  await expect(table).toHaveCount(100);
  await expect(table.first()).toContainText("root");
  await expect(table.first()).toContainText("login");
  await expect(table.nth(1)).toContainText("first-key");
  await expect(table.nth(1)).toContainText("/api/v1/annotations");
  await page.getByRole("button", { name: "Show older" }).click();
  await expect(table.last()).toContainText("/api/v1/access/users");
  await expect(page.getByRole("button", { name: "Show older" })).toHaveCount(0);
  await page.getByLabel("Who").fill("root");
  await page.getByLabel("Who").press("Enter");
  await expect(page).toHaveURL(/who=root/);
  await expect(table).toHaveCount(1);
  await page.getByLabel("Time").selectOption({ label: "Between…" });
  await page.getByLabel("until").fill("2026-01-01T00:00");
  await page.getByLabel("until").press("Enter");
  await expect(page.getByRole("heading", { name: "No records" })).toBeVisible();
});
