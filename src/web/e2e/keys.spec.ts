/** Keys made, rotated and revoked on the page of a daemon with access control. */
import type { Locator, Page } from "@playwright/test";
import { ACCESS, firstKey, openWithKey } from "./support/access";
import type { Daemon } from "./support/daemon";
import { expect, test } from "./support/test";

const TOKEN = /^gry_[0-9a-z]{12}_[0-9a-z]{52}$/;

function rowOf(page: Page, name: string): Locator {
  return page
    .getByRole("table")
    .locator("tbody tr")
    .filter({ has: page.getByRole("button", { name: `Revoke ${name}`, exact: true }) });
}

/** Copies the key in the open dialog, closes the dialog, and returns the key. */
async function copiedKey(page: Page, name: string): Promise<string> {
  const dialog = page.getByRole("dialog", { name: `Key ${name}` });
  const token = await dialog.getByLabel("Key", { exact: true }).inputValue();
  expect(token).toMatch(TOKEN);
  await dialog.getByRole("button", { name: "Copy" }).click();
  await expect(dialog.getByRole("button", { name: "Copied" })).toBeVisible();
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await expect(dialog).toBeHidden();
  return token;
}

async function statusOf(daemon: Daemon, path: string, key: string): Promise<number> {
  return (await fetch(daemon.url + path, { headers: { authorization: `Bearer ${key}` } })).status;
}

async function makeKey(page: Page, name: string, scopes: readonly string[]): Promise<string> {
  await page.getByRole("button", { name: "New key" }).click();
  const dialog = page.getByRole("dialog", { name: "New key" });
  await dialog.getByLabel(/^Name/).fill(name);
  for (const scope of scopes)
    await dialog.getByRole("checkbox", { name: new RegExp(`^${scope}`) }).check();
  await dialog.getByRole("button", { name: "Make key" }).click();
  return copiedKey(page, name);
}

async function rotate(page: Page, name: string, overlap: string): Promise<string> {
  await rowOf(page, name).getByRole("button", { name: "Rotate" }).click();
  const dialog = page.getByRole("dialog", { name: `Rotate ${name}` });
  await dialog.getByLabel(/^Overlap/).selectOption({ label: overlap });
  await dialog.getByRole("button", { name: "Rotate" }).click();
  return copiedKey(page, name);
}

async function revoke(page: Page, name: string): Promise<void> {
  await rowOf(page, name).getByRole("button", { name: "Revoke" }).click();
  const dialog = page.getByRole("dialog", { name: `Revoke ${name}?` });
  await dialog.getByRole("button", { name: "Revoke" }).click();
  await expect(dialog).toBeHidden();
}

test("a key is made, rotated with an overlap, and revoked", async ({
  context,
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(/Failed to load resource/);
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const daemon = await startDaemon(ACCESS);
  await openWithKey(page, `${daemon.url}/access`, await firstKey(daemon));
  await expect(rowOf(page, "first-key")).toContainText("This tab");

  await page.getByRole("button", { name: "New key" }).click();
  const dialog = page.getByRole("dialog", { name: "New key" });
  await dialog.getByRole("button", { name: "Make key" }).click();
  await expect(dialog.getByText("Enter a name.")).toBeVisible();
  await dialog.getByLabel(/^Name/).fill("web agents");
  await dialog.getByRole("checkbox", { name: /^admin/ }).check();
  for (const included of ["ingest", "read", "objects"]) {
    await expect(dialog.getByRole("checkbox", { name: new RegExp(`^${included}`) })).toBeChecked();
    await expect(dialog.getByRole("checkbox", { name: new RegExp(`^${included}`) })).toBeDisabled();
  }
  await dialog.getByRole("checkbox", { name: /^admin/ }).uncheck();
  await dialog.getByRole("checkbox", { name: /^read/ }).check();
  await dialog.getByLabel(/^Senders/).fill("web");
  await dialog.getByLabel("Expires").selectOption({ label: "In 30 days" });
  await dialog.getByRole("button", { name: "Make key" }).click();
  const key = await copiedKey(page, "web agents");
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(key);
  expect(await page.content(), "a secret is shown once").not.toContain(key);
  const row = rowOf(page, "web agents");
  for (const text of ["read", "senders web…", "by first-key", "in 29 d", "not since the start"]) {
    await expect(row).toContainText(text);
  }
  expect(await statusOf(daemon, "/api/v1/hosts", key)).toBe(200);
  expect(await statusOf(daemon, "/api/v1/access/keys", key)).toBe(403);

  const second = await rotate(page, "web agents", "1 day");
  await expect(row).toContainText("Rotating");
  expect(await statusOf(daemon, "/api/v1/hosts", key)).toBe(200);
  expect(await statusOf(daemon, "/api/v1/hosts", second)).toBe(200);
  const third = await rotate(page, "web agents", "None: the present secret ends now");
  await expect(row).not.toContainText("Rotating");
  expect(await statusOf(daemon, "/api/v1/hosts", key)).toBe(401);
  expect(await statusOf(daemon, "/api/v1/hosts", second)).toBe(401);
  expect(await statusOf(daemon, "/api/v1/hosts", third)).toBe(200);

  await revoke(page, "web agents");
  await expect(row).toHaveCount(0);
  expect(await statusOf(daemon, "/api/v1/hosts", third)).toBe(401);
});

test("the key of this tab is replaced when it is rotated, and asked for when it is revoked", async ({
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(/Failed to load resource/);
  const daemon = await startDaemon(ACCESS);
  const first = await firstKey(daemon);
  await openWithKey(page, `${daemon.url}/access`, first);
  const rotated = await rotate(page, "first-key", "None: the present secret ends now");
  expect(await statusOf(daemon, "/api/v1/access/keys", first)).toBe(401);
  expect(await statusOf(daemon, "/api/v1/access/keys", rotated)).toBe(200);
  await page.reload();
  await expect(rowOf(page, "first-key")).toContainText("This tab");
  await revoke(page, "first-key");
  await expect(page.getByRole("heading", { name: "Log in" })).toBeVisible();
});

test("a new key that was not copied is closed only after a question", async ({
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(/status of 400/);
  const daemon = await startDaemon();
  await page.goto(`${daemon.url}/access`);
  await expect(page.getByText("Access control is off")).toBeVisible();
  await page.getByRole("button", { name: "New key" }).click();
  const form = page.getByRole("dialog", { name: "New key" });
  await form.getByLabel(/^Name/).fill("grafana");
  await form.getByRole("checkbox", { name: /^read/ }).check();
  await form.getByLabel(/^Name/).press("Enter");
  const dialog = page.getByRole("dialog", { name: "Key grafana" });
  await expect(dialog).toBeVisible();
  page.once("dialog", (question) => void question.dismiss());
  await page.keyboard.press("Escape");
  await expect(dialog).toBeVisible();
  page.once("dialog", (question) => void question.accept());
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await expect(dialog).toBeHidden();
  // The name is taken now.
  await page.getByRole("button", { name: "New key" }).click();
  await form.getByLabel(/^Name/).fill("grafana");
  await form.getByRole("checkbox", { name: /^read/ }).check();
  await form.getByRole("button", { name: "Make key" }).click();
  await expect(form.getByRole("alert")).toContainText('a key "grafana" exists');
});

test("a key is copied without the clipboard API, which plain http lacks", async ({
  context,
  page,
  startDaemon,
}) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.addInitScript(() => {
    Object.defineProperty(navigator, "clipboard", { value: undefined });
  });
  const daemon = await startDaemon();
  await page.goto(`${daemon.url}/access`);
  const key = await makeKey(page, "telegraf", ["ingest"]);
  const search = page.getByLabel("Search keys");
  await search.focus();
  await page.keyboard.press("Control+V");
  await expect(search).toHaveValue(key);
});

test("keys are searched and sorted", async ({ page, startDaemon }) => {
  const daemon = await startDaemon();
  const add = (key: object) => daemon.post("/api/v1/access/keys", key);
  await add({ name: "a", scopes: ["read"] });
  await add({ name: "b", scopes: ["ingest"], senders: "web", expires: Date.now() + 86_400_000 });
  await page.goto(`${daemon.url}/access`);
  const names = () => page.getByRole("table").getByRole("rowheader").allTextContents();
  await expect.poll(async () => (await names()).length).toBe(2);
  expect((await names())[0]).toMatch(/^a/);
  await page.getByRole("button", { name: "Expires" }).click();
  await expect(page).toHaveURL(/keys=expires/);
  await expect.poll(async () => (await names())[0]).toMatch(/^bExpires soon/);
  await page.getByLabel("Search keys").fill("web");
  await expect.poll(async () => (await names()).length).toBe(1);
});

test("a key without the right to manage keys cannot list them", async ({
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(/Failed to load resource/);
  const daemon = await startDaemon(ACCESS);
  daemon.key = await firstKey(daemon);
  const reader = { name: "reader", scopes: ["read"] };
  const { token } = (await daemon.post("/api/v1/access/keys", reader)) as { token: string };
  await openWithKey(page, `${daemon.url}/access`, token);
  await expect(page.getByRole("heading", { name: "No permission" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Access", exact: true })).toHaveCount(0);
});

test("a code is made, copied as a command, used by an agent's request, and revoked", async ({
  context,
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(/Failed to load resource/);
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const daemon = await startDaemon(ACCESS);
  await openWithKey(page, `${daemon.url}/access?show=codes`, await firstKey(daemon));
  const make = async (senders: string) => {
    await page.getByRole("button", { name: "New code" }).click();
    const form = page.getByRole("dialog", { name: "New code" });
    await form.getByLabel(/^Agents/).fill(senders);
    await form.getByRole("button", { name: "Make code" }).click();
    const shown = page.getByRole("dialog", { name: /^Code / });
    await shown.getByRole("button", { name: "Copy" }).click();
    await expect(shown.getByRole("button", { name: "Copied" })).toBeVisible();
    await shown.getByRole("button", { name: "Close" }).last().click();
    await expect(shown).toBeHidden();
    const words = (await page.evaluate(() => navigator.clipboard.readText())).split(" ");
    expect(words.slice(0, 3)).toEqual(["granary-agent", "enroll", daemon.url]);
    return words[3] ?? "";
  };
  const table = page.getByRole("table").locator("tbody tr");
  // The first start made a code for the first administrator.
  const rows = table.filter({ hasNotText: "The first administrator" });
  await expect(table).toHaveCount(1);
  const code = await make("web1");
  await expect(rows).toHaveCount(1);
  await expect(rows).toContainText("web1…");
  await expect(rows).toContainText("by first-key");
  const enroll = async (code: string, sender: string) => {
    const body = JSON.stringify({ code, sender });
    const headers = { "content-type": "application/json" };
    const path = `${daemon.url}/api/v1/access/enroll`;
    return (await fetch(path, { method: "POST", headers, body })).status;
  };
  expect(await enroll(code, "db1")).toBe(400);
  expect(await enroll(code, "web1")).toBe(201);
  await page.getByRole("button", { name: "Keys" }).click();
  await expect(table.filter({ hasText: "web1" })).toHaveCount(1);
  await page.getByRole("button", { name: "Codes" }).click();
  await expect(table).toHaveCount(1);
  await expect(rows).toHaveCount(0);
  const other = await make("");
  await expect(rows).toContainText("Any agent");
  await rows.getByRole("button", { name: /^Revoke/ }).click();
  const question = page.getByRole("dialog", { name: /^Revoke/ });
  await question.getByRole("button", { name: "Revoke" }).click();
  await expect(table).toHaveCount(1);
  await expect(rows).toHaveCount(0);
  expect(await enroll(other, "web1")).toBe(401);
});
