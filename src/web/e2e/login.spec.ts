/** Logins, profiles and sessions of users. */
import type { Page } from "@playwright/test";
import { ACCESS, addUser, fillLogin, firstLink, PASSWORD, totpCode } from "./support/access";
import { expect, test } from "./support/test";

const title = (page: Page, name: string) => page.getByRole("heading", { name, level: 1 });

test("a user logs in where the page asked, and logs out in all tabs", async ({
  context,
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(/Failed to load resource/);
  const daemon = await startDaemon(ACCESS);
  await addUser(daemon, "ann", { default: "viewer" });
  await page.goto(`${daemon.url}/explore?metric=system_load_1m&range=6h`);
  await fillLogin(page, "ann", "wrong password");
  await expect(page.getByRole("alert")).toContainText("wrong");
  await fillLogin(page, "ann");
  await expect(page.getByRole("link", { name: "Profile of ann" })).toBeVisible();
  await expect(title(page, "Log in")).toHaveCount(0);
  expect(page.url()).toBe(`${daemon.url}/explore?metric=system_load_1m&range=6h`);
  expect(await page.evaluate(() => document.cookie), "scripts cannot read it").toBe("");

  // All tabs of the browser share the session. A missing right is shown as an error, not as a new
  // login.
  const other = await context.newPage();
  await other.goto(`${daemon.url}/status`);
  await expect(other.getByText("Cannot load the status")).toBeVisible();
  const navigation = other.getByRole("navigation", { name: "Views" });
  await expect(navigation.getByRole("link", { name: "Access" })).toHaveCount(0);
  await page.getByRole("button", { name: "Log out" }).click();
  await expect(title(page, "Log in")).toBeVisible();
  await navigation.getByRole("link", { name: "Dashboards" }).click();
  await expect(title(other, "Log in")).toBeVisible();
  await fillLogin(other, "ANN");
  await expect(title(other, "Dashboards")).toBeVisible();
});

test("a second factor is turned on, asked for, and turned off", async ({
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(/Failed to load resource/);
  const daemon = await startDaemon(ACCESS);
  await addUser(daemon, "ann", { default: "viewer" });
  await page.goto(`${daemon.url}/profile`);
  await fillLogin(page, "ann");
  await page.getByRole("button", { name: "Turn on" }).click();
  const dialog = page.getByRole("dialog", { name: "Turn on the second factor" });
  await dialog.getByLabel("Password").fill("wrong password");
  await dialog.getByRole("button", { name: "Next" }).click();
  await expect(dialog.getByRole("alert")).not.toBeEmpty();
  await dialog.getByLabel("Password").fill(PASSWORD);
  await dialog.getByRole("button", { name: "Next" }).click();
  await expect(dialog.getByRole("img", { name: "QR code" })).toBeVisible();
  const link = await dialog.getByRole("link", { name: "open the app" }).getAttribute("href");
  const uri = new URL(link ?? "");
  expect(uri.protocol).toBe("otpauth:");
  const secret = uri.searchParams.get("secret") ?? "";
  await expect(dialog.locator(".totp-groups")).toHaveText(secret.match(/.{1,4}/g)?.join(" ") ?? "");
  await dialog.getByLabel(/^Code/).fill(totpCode(secret, 100));
  await dialog.getByRole("button", { name: "Turn on" }).click();
  await expect(dialog.getByRole("alert")).not.toBeEmpty();
  await dialog.getByLabel(/^Code/).fill(totpCode(secret));
  await dialog.getByRole("button", { name: "Turn on" }).click();
  await expect(dialog).toBeHidden();
  await expect(page.getByRole("heading", { name: "Second factor On" })).toBeVisible();

  await page.getByRole("button", { name: "Log out" }).first().click();
  await fillLogin(page, "ann");
  // The code of the current step was used to turn the factor on.
  await page.getByLabel(/^Code/).fill(totpCode(secret, 1));
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(title(page, "Profile")).toBeVisible();
  await page.getByRole("button", { name: "Turn off" }).click();
  const question = page.getByRole("dialog", { name: "Turn off the second factor" });
  await question.getByLabel("Password").fill(PASSWORD);
  await question.getByRole("button", { name: "Turn off" }).click();
  await expect(page.getByRole("heading", { name: "Second factor Off" })).toBeVisible();
});

test("a changed password ends other sessions, and other tabs go on", async ({
  browser,
  context,
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(/Failed to load resource/);
  const daemon = await startDaemon(ACCESS);
  await addUser(daemon, "ann", { default: "editor" });
  await page.goto(`${daemon.url}/profile`);
  await fillLogin(page, "ann");
  await expect(title(page, "Profile")).toBeVisible();
  const tab = await context.newPage();
  await tab.goto(`${daemon.url}/dashboards`);
  await expect(title(tab, "Dashboards")).toBeVisible();
  const elsewhere = await (await browser.newContext()).newPage();
  await elsewhere.goto(`${daemon.url}/dashboards`);
  await fillLogin(elsewhere, "ann");
  await expect(title(elsewhere, "Dashboards")).toBeVisible();

  await page.getByRole("button", { name: "Change password" }).click();
  const dialog = page.getByRole("dialog", { name: "Change password" });
  await dialog.getByLabel("Present password").fill(PASSWORD);
  await dialog.getByLabel("New password").fill("another horse battery");
  await dialog.getByLabel("Repeat password").fill("another horse batter");
  await dialog.getByRole("button", { name: "Change", exact: true }).click();
  await expect(dialog.getByRole("alert")).toContainText("differ");
  await dialog.getByLabel("Repeat password").fill("another horse battery");
  await dialog.getByRole("button", { name: "Change", exact: true }).click();
  await expect(dialog).toBeHidden();

  // This browser's other tab has the new session, whose token it asks for.
  await tab.getByRole("button", { name: "New dashboard" }).click();
  const form = tab.getByRole("dialog");
  await form.getByLabel("Title").fill("Rooms");
  await form.getByRole("button", { name: "Create" }).click();
  await expect(tab).toHaveURL(/\/dashboards\/rooms/);
  await elsewhere.getByRole("link", { name: "Alerts" }).click();
  await expect(title(elsewhere, "Log in")).toBeVisible();
  await elsewhere.context().close();
});

test("the one-time link makes the first administrator, once", async ({
  browser,
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(/Failed to load resource/);
  const daemon = await startDaemon(ACCESS);
  const { hash } = await firstLink(daemon);
  await page.goto(`${daemon.url}/login${hash}`);
  await expect(title(page, "First administrator")).toBeVisible();
  expect(page.url(), "the address loses the code").toBe(`${daemon.url}/login`);
  const fill = async (at: Page, name: string, password: string, repeated = password) => {
    await at.getByLabel(/^User/).fill(name);
    await at.getByLabel(/^Password/).fill(password);
    await at.getByLabel("Repeat password").fill(repeated);
    await at.getByRole("button", { name: "Create administrator" }).click();
  };
  await fill(page, "root", PASSWORD, `${PASSWORD}!`);
  await expect(page.getByRole("alert")).toContainText("differ");
  // The code stays valid after a refused name.
  await fill(page, "no name", PASSWORD);
  await expect(page.getByRole("alert")).toContainText("name");
  await fill(page, "root", PASSWORD);
  await expect(title(page, "Fleet")).toBeVisible();
  await page.getByRole("link", { name: "Profile of root" }).click();
  await expect(page.getByText("admin of everything")).toBeVisible();
  const elsewhere = await (await browser.newContext()).newPage();
  await elsewhere.goto(`${daemon.url}/login${hash}`);
  await fill(elsewhere, "second", PASSWORD);
  await expect(elsewhere.getByRole("alert")).not.toBeEmpty();
  await expect(title(elsewhere, "First administrator")).toBeVisible();
  await elsewhere.context().close();
});

test("a silence of a user has the user's name, which nobody enters", async ({
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(/Failed to load resource/);
  const daemon = await startDaemon(ACCESS);
  await addUser(daemon, "ann", { default: "editor" });
  await page.goto(`${daemon.url}/alerts?show=silences`);
  await fillLogin(page, "ann");
  await page.getByRole("link", { name: "Profile of ann" }).waitFor();
  await page.getByRole("button", { name: "New silence" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name of label 1").fill("alertname");
  await dialog.getByLabel("Value of alertname").fill("LoadHigh");
  await dialog.getByLabel("Comment").fill("upgrade");
  await expect(dialog.getByLabel("Author")).toHaveCount(0);
  await dialog.getByRole("button", { name: "Silence", exact: true }).click();
  await expect(page.getByText("by ann")).toBeVisible();
});

test("a user sees all sessions of the account, ends one, and logs out everywhere", async ({
  browser,
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(/Failed to load resource/);
  const daemon = await startDaemon(ACCESS);
  await addUser(daemon, "ann", { default: "viewer" });
  const elsewhere = await (await browser.newContext()).newPage();
  const logInElsewhere = async () => {
    await elsewhere.goto(`${daemon.url}/dashboards`);
    await fillLogin(elsewhere, "ann");
    await expect(title(elsewhere, "Dashboards")).toBeVisible();
  };
  const isOutElsewhere = async () => {
    await elsewhere.getByRole("link", { name: "Alerts" }).click();
    await expect(title(elsewhere, "Log in")).toBeVisible();
  };
  await logInElsewhere();
  await page.goto(`${daemon.url}/profile`);
  await fillLogin(page, "ann");
  const rows = page.getByRole("region", { name: "Sessions" }).getByRole("listitem");
  await expect(rows).toHaveCount(2);
  await expect(rows.filter({ hasText: "This browser" })).toHaveCount(1);
  await expect(rows.filter({ hasText: "This browser" }).getByRole("button")).toHaveCount(0);
  await expect(rows.filter({ hasText: "127.0.0.1" })).toHaveCount(2);
  await page.getByRole("button", { name: /^End the session of/ }).click();
  await expect(rows).toHaveCount(1);
  await isOutElsewhere();
  await logInElsewhere();
  await page.getByRole("button", { name: "Log out everywhere" }).click();
  await expect(title(page, "Log in")).toBeVisible();
  await isOutElsewhere();
  await elsewhere.context().close();
});

test("a role that needs a second factor reaches only the profile until it is on", async ({
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(/Failed to load resource/);
  const settings = "[security]\naccess = true\ntotp_role = 'admin'\n";
  const daemon = await startDaemon({ "granary.toml": settings });
  await addUser(daemon, "root", { "*": "admin" });
  await page.goto(`${daemon.url}/dashboards`);
  await fillLogin(page, "root");
  await expect(page.getByRole("region", { name: "Required" })).toBeVisible();
  await page.getByRole("link", { name: "Status" }).click();
  await expect(title(page, "Profile")).toBeVisible();
  await page.getByRole("button", { name: "Turn on" }).click();
  const dialog = page.getByRole("dialog", { name: "Turn on the second factor" });
  await dialog.getByLabel("Password").fill(PASSWORD);
  await dialog.getByRole("button", { name: "Next" }).click();
  const secret = (await dialog.locator(".totp-groups").textContent())?.replaceAll(" ", "") ?? "";
  await dialog.getByLabel(/^Code/).fill(totpCode(secret));
  await dialog.getByRole("button", { name: "Turn on" }).click();
  await expect(title(page, "Status")).toBeVisible();
});
