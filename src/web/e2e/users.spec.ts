/** Users added, changed and removed on the page. */
import type { Locator, Page } from "@playwright/test";
import { ACCESS, addUser, fillLogin } from "./support/access";
import { expect, test } from "./support/test";

function rowOf(page: Page, name: string): Locator {
  return page
    .getByRole("table")
    .locator("tbody tr")
    .filter({ has: page.getByRole("button", { name: `Change ${name}`, exact: true }) });
}

test("a user is added, changed, disabled and removed", async ({
  browser,
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(/Failed to load resource/);
  const daemon = await startDaemon(ACCESS);
  await addUser(daemon, "root", { "*": "admin" });
  await page.goto(`${daemon.url}/access?show=users`);
  await fillLogin(page, "root");
  await expect(rowOf(page, "root")).toContainText("admin of everything");
  await expect(rowOf(page, "root")).toContainText("You");

  await page.getByRole("button", { name: "New user" }).click();
  const form = page.getByRole("dialog", { name: "New user" });
  await form.getByLabel("Name").fill("ann");
  await form.getByRole("button", { name: "Generate" }).click();
  const password = await form.getByLabel("Password").inputValue();
  expect(password).toMatch(/^[a-z0-9]{5}(-[a-z0-9]{5}){3}$/);
  await form.getByRole("button", { name: "Add", exact: true }).click();
  await expect(form).toBeHidden();
  await expect(rowOf(page, "ann")).toContainText("viewer of default");
  await expect(rowOf(page, "ann")).toContainText("by root");
  await expect(rowOf(page, "ann")).toContainText("never");

  const elsewhere = await (await browser.newContext()).newPage();
  await elsewhere.goto(`${daemon.url}/access`);
  await fillLogin(elsewhere, "ann", password);
  await expect(elsewhere.getByRole("heading", { name: "No permission" })).toBeVisible();

  await rowOf(page, "ann").getByRole("button", { name: "Change" }).click();
  const change = page.getByRole("dialog", { name: "Change ann" });
  await change.getByLabel("Role in default", { exact: true }).selectOption("admin");
  await change.getByRole("button", { name: "Save" }).click();
  await expect(rowOf(page, "ann")).toContainText("admin of default");
  // The changed user logs in again, and then manages keys.
  await elsewhere.getByRole("link", { name: "Dashboards" }).click();
  await fillLogin(elsewhere, "ann", password);
  await elsewhere.getByRole("link", { name: "Access" }).click();
  await expect(elsewhere.getByRole("button", { name: "New key" })).toBeVisible();
  await expect(elsewhere.getByRole("button", { name: "Audit" })).toHaveCount(0);

  await rowOf(page, "ann").getByRole("button", { name: "Change" }).click();
  await change.getByLabel(/^Disabled/).check();
  await change.getByRole("button", { name: "Save" }).click();
  await expect(rowOf(page, "ann")).toContainText("Disabled");
  await elsewhere.getByRole("link", { name: "Dashboards" }).click();
  await fillLogin(elsewhere, "ann", password);
  await expect(elsewhere.getByRole("alert")).toContainText("wrong");
  await elsewhere.context().close();

  await rowOf(page, "ann").getByRole("button", { name: "Remove" }).click();
  const remove = page.getByRole("dialog", { name: "Remove ann?" });
  await remove.getByRole("button", { name: "Remove" }).click();
  await expect(rowOf(page, "ann")).toHaveCount(0);
});
