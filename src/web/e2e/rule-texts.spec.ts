/** Rules and receivers that are written, changed and deleted on the page. */
import { createServer } from "node:http";
import type { Page } from "@playwright/test";
import type { Alert } from "../src/api/types";
import { axeViolations } from "./support/axe";
import { ACCESS, addUser, fillLogin } from "./support/access";
import { chooseFromMenu } from "./support/charts";
import { freePort, type Daemon } from "./support/daemon";
import { HOST, hostSamples } from "./support/data";
import { drawnChart } from "./support/drawn";
import { eventually } from "./support/eventually";
import { expect, test } from "./support/test";

const rules = (threshold: string) => `groups:
- name: shop
  interval: 1s
  rules:
  - record: shop:load
    expr: last_over_time(system_load_1m{host="${HOST}"}[3h])
  - alert: ShopLoad
    expr: last_over_time(system_load_1m{host="${HOST}"}[3h]) ${threshold}
`;
const FIRING = rules("> 0.2");
const QUIET = rules("> 20000");
const FAULTY = rules("> rate(");

const box = (page: Page) => page.getByRole("textbox", { name: /^Text of/ });
const save = (page: Page) => page.getByRole("button", { name: "Save", exact: true });
const status = (page: Page) => page.locator(".text-status");
/** Returns the selected text of the box. */
const selected = (page: Page) =>
  box(page).evaluate((field) => {
    const { value, selectionStart, selectionEnd } = field as HTMLTextAreaElement;
    return value.slice(selectionStart, selectionEnd);
  });

async function isFiring(daemon: Daemon): Promise<boolean> {
  const { data } = (await daemon.request("/api/v1/alerts")) as { data: { alerts: Alert[] } };
  return data.alerts.some(
    ({ labels, state }) => labels["alertname"] === "ShopLoad" && state === "firing",
  );
}

/** Saves rules as another person would; returns the new version. */
async function saveElsewhere(daemon: Daemon, version: number | null, text: string) {
  const saved = await daemon.post("/api/v1/rule-files/shop", { version, text }, "PUT");
  return (saved as { version: number }).version;
}

test("a rule is written, fires, is changed, and is deleted", async ({ page, startDaemon }) => {
  const daemon = await startDaemon();
  await daemon.postSamples(hostSamples(HOST, 1, 0));
  await page.goto(`${daemon.url}/alerts?show=rules`);
  const files = page.getByRole("region", { name: "Rule files" });
  await expect(files.locator(".alert-row")).toContainText("Read-only");
  await files.getByRole("link", { name: "New rules" }).click();

  // A fault leads to its line, and nothing is saved.
  await box(page).fill(FAULTY);
  await expect(status(page)).toContainText("1 fault");
  await expect(save(page)).toBeDisabled();
  expect(await axeViolations(page)).toEqual([]);
  await page.getByRole("button", { name: /^Line 7/ }).click();
  expect(await selected(page)).toBe("  - alert: ShopLoad");
  await box(page).fill(FIRING);
  await expect(status(page)).toHaveText("Valid: 2 rules in 1 group");
  await save(page).click();
  await expect(page.getByText("Enter a name.")).toBeVisible();
  await expect(page.getByLabel("Name")).toBeFocused();
  await page.keyboard.type("shop");
  await expect(page.getByText("Enter a name.")).toBeHidden();
  await page.keyboard.press("Control+s");
  await expect(page).toHaveURL(/\/alerts\/rules\/shop$/);
  await expect(status(page)).toHaveText("Saved, in effect now: 2 rules in 1 group");
  await expect(box(page)).toBeFocused();
  await eventually("the rule fires", () => isFiring(daemon));

  // From the rule's page, its place in the text is a click away.
  await page.goto(`${daemon.url}/alerts?rule=shop/ShopLoad`);
  await page.getByRole("link", { name: "Edit rule" }).click();
  await expect(box(page)).toHaveValue(FIRING);
  expect(await selected(page)).toBe("  - alert: ShopLoad");
  await expect(save(page)).toBeDisabled();
  await box(page).fill(QUIET);
  await save(page).click();
  await expect(status(page)).toContainText("Saved");
  await expect(box(page)).toBeFocused();
  await eventually("the alert ends", async () => !(await isFiring(daemon)));

  await page.getByRole("button", { name: "Delete" }).click();
  const dialog = page.getByRole("dialog", { name: "Delete “shop”?" });
  await expect(dialog).toContainText("2 rules in 1 group");
  await dialog.getByRole("button", { name: "Delete" }).click();
  await expect(page).toHaveURL(/\/alerts\?show=rules$/);
  await expect(files.locator(".alert-row")).toHaveCount(1);
  await expect(page.getByRole("link", { name: "LoadHigh" })).toBeVisible();
  await expect(page.getByRole("link", { name: "ShopLoad" })).toHaveCount(0);
});

test("a conflict keeps both texts until one is chosen", async ({ page, startDaemon, watch }) => {
  watch.permit(/409 \(Conflict\)/, /404 \(Not Found\)/);
  const daemon = await startDaemon();
  const first = await saveElsewhere(daemon, null, FIRING);
  await page.setViewportSize({ width: 390, height: 800 });
  await page.goto(`${daemon.url}/alerts/rules/shop`);
  await box(page).fill(QUIET);
  await expect(status(page)).toContainText("Valid");
  const theirs = await saveElsewhere(daemon, first, FIRING.replace("shop:load", "shop:theirs"));
  await box(page).press("Control+s");
  const conflict = page.getByRole("region", { name: "Conflict" });
  await expect(page.getByRole("alert").filter({ has: conflict })).toBeFocused();
  await expect(conflict).toBeInViewport();
  await expect(status(page)).toHaveText("Not saved: somebody else changed this text");
  await expect(conflict).toContainText("Somebody else changed this text");
  await expect(conflict).toContainText(`Version ${theirs} was saved`);
  await expect(box(page)).toHaveValue(QUIET);
  await expect(conflict.locator("pre")).toContainText("shop:theirs");
  expect(await axeViolations(page)).toEqual([]);
  await conflict.getByRole("button", { name: "Load theirs" }).click();
  await expect(conflict).toBeHidden();
  await expect(box(page)).toHaveValue(/shop:theirs/);
  await page.getByRole("button", { name: "Back to mine" }).click();
  await expect(box(page)).toHaveValue(QUIET);

  const newest = await saveElsewhere(daemon, theirs, FIRING);
  await save(page).click();
  await conflict.getByRole("button", { name: `Overwrite version ${newest}` }).click();
  await expect(status(page)).toContainText("Saved");
  const stored = (await daemon.request("/api/v1/rule-files/shop")) as {
    text: string;
    version: number;
  };
  expect(stored.text).toBe(QUIET);

  // A text that was deleted meanwhile can be saved again.
  await daemon.request(`/api/v1/rule-files/shop?version=${stored.version}`, { method: "DELETE" });
  await box(page).fill(FIRING);
  await save(page).click();
  await expect(conflict).toContainText("Somebody else deleted this text");
  await conflict.getByRole("button", { name: "Save mine again" }).click();
  await expect(status(page)).toContainText("Saved");
});

test("unsaved text is not left without a question", async ({ page, startDaemon, watch }) => {
  watch.permit(/409 \(Conflict\)/, /404 \(Not Found\)/);
  const daemon = await startDaemon();
  await saveElsewhere(daemon, null, FIRING);
  await page.goto(`${daemon.url}/alerts/rules`);
  // New lines keep the indentation of keys, and undo removes them.
  await box(page).fill("groups:\n  - name: a");
  await box(page).press("Enter");
  await expect(box(page)).toHaveValue("groups:\n  - name: a\n    ");
  await box(page).press("Control+z");
  await expect(box(page)).toHaveValue("groups:\n  - name: a");
  const questions: string[] = [];
  page.on("dialog", (dialog) => {
    questions.push(dialog.message());
    void dialog.dismiss();
  });
  await page.getByRole("link", { name: "All rules" }).click();
  expect(questions).toEqual(["Changes of these rules are not saved. Leave without saving?"]);
  await expect(page).toHaveURL(/\/alerts\/rules$/);
  // The name of another text is refused.
  await page.getByLabel("Name").fill("shop");
  await save(page).click();
  await expect(page.getByText("There are rules called shop already")).toBeVisible();
  await expect(box(page)).toHaveValue("groups:\n  - name: a");
});

test("receivers are written and tested", async ({ page, startDaemon }) => {
  const port = await freePort();
  const receiver = createServer((_, answer) => answer.end()).listen(port, "127.0.0.1");
  const daemon = await startDaemon();
  await page.goto(`${daemon.url}/alerts?show=receivers`);
  const warning = page.getByRole("region", { name: "No receivers" });
  await warning.getByRole("link", { name: "Define receivers on the page" }).click();
  const text = (url: string) =>
    `route: {receiver: duty}\nreceivers:\n- name: duty\n  webhook_configs: [{${url}}]\n`;
  // A text of the page may not read files of the daemon's machine.
  await box(page).fill(text("url_file: /etc/hostname"));
  await expect(status(page)).toContainText("1 fault");
  await expect(page.locator(".text-faults")).toContainText("alerts.notifications");
  await box(page).fill(text(`url: 'http://127.0.0.1:${port}/'`));
  await expect(status(page)).toHaveText("Valid: 1 receiver");
  await save(page).click();
  await expect(status(page)).toHaveText("Saved, in effect now: 1 receiver");
  await page.getByRole("link", { name: "Send a test" }).click();
  await page.getByRole("button", { name: "Send a test to duty" }).click();
  await expect(page.getByText("webhook/0 accepted")).toBeVisible();
  await expect(warning).toBeHidden();
  await page.getByRole("link", { name: "Edit receivers" }).click();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await expect(page.getByRole("heading", { name: "No receivers" })).toBeVisible();
  receiver.close();
});

test("receivers of a file are read-only, with the reason", async ({ page, startDaemon }) => {
  const daemon = await startDaemon({
    "receivers.yml": "route: {receiver: duty}\nreceivers:\n- name: duty\n",
  });
  await page.goto(`${daemon.url}/alerts/receivers`);
  await expect(page.getByRole("heading", { name: /cannot be edited here/ })).toBeVisible();
  await expect(page.locator(".text-reason")).toContainText("alerts.notifications");
  await expect(box(page)).toBeHidden();
});

test("a chart becomes a rule in effect", async ({ page, startDaemon, watch }) => {
  watch.permit(/409 \(Conflict\)/);
  const daemon = await startDaemon();
  await daemon.postSamples(hostSamples(HOST, 1, 0));
  await page.goto(`${daemon.url}/hosts/${HOST}?resolution=1m&range=1h`);
  await drawnChart(page, "CPU");
  await chooseFromMenu(page, "CPU", "Alert rule…");
  const dialog = page.getByRole("dialog", { name: "Alert rule" });
  await dialog.getByLabel("Threshold").fill("90%");
  await expect(dialog.getByRole("status")).toContainText("Valid.");
  await dialog.getByRole("button", { name: "Save rule" }).click();
  const saved = page.getByRole("dialog", { name: "Saved" });
  await saved.getByRole("link", { name: "Open rule" }).click();
  await expect(page).toHaveURL(/rule=CPU%2FCPU/);
  await expect(page.getByRole("heading", { name: "CPU", exact: true })).toBeVisible();
  await page.getByRole("link", { name: "Edit rule" }).click();
  await expect(page).toHaveURL(/\/alerts\/rules\/cpu\?/);
  await expect(box(page)).toHaveValue(/> 90/);

  // A second rule of the same name would have the same alerts.
  await page.goto(`${daemon.url}/hosts/${HOST}?resolution=1m&range=1h`);
  await drawnChart(page, "CPU");
  await chooseFromMenu(page, "CPU", "Alert rule…");
  await dialog.getByLabel("Threshold").fill("95%");
  await expect(dialog.getByRole("status")).toContainText("Valid.");
  await dialog.getByRole("button", { name: "Save rule" }).click();
  await expect(dialog).toContainText("There are rules called cpu already");
  await dialog.getByRole("link", { name: "cpu", exact: true }).click();
  await expect(box(page)).toHaveValue(/> 90/);
});

test("a text survives the end of a session, for its author only", async ({
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(/401 \(Unauthorized\)/);
  const daemon = await startDaemon(ACCESS);
  await addUser(daemon, "ada", { "*": "admin" });
  await addUser(daemon, "bob", { "*": "admin" });
  await saveElsewhere(daemon, null, FIRING);
  await page.goto(`${daemon.url}/alerts/rules/shop`);
  await fillLogin(page, "ada");
  await expect(box(page)).toHaveValue(FIRING);
  await page.context().clearCookies();
  await box(page).fill(QUIET);
  await fillLogin(page, "ada");
  await expect(box(page)).toHaveValue(QUIET);
  await expect(status(page)).toHaveText("Valid: 2 rules in 1 group");

  await page.context().clearCookies();
  await box(page).fill(FAULTY);
  await fillLogin(page, "bob");
  await expect(box(page)).toHaveValue(FIRING);
});

test("the address of no text leads back", async ({ page, startDaemon, watch }) => {
  watch.permit(/404 \(Not Found\)/);
  const daemon = await startDaemon();
  for (const name of ["none", "%"]) {
    await page.goto(`${daemon.url}/alerts/rules/${name}`);
    await expect(page.getByRole("heading", { name: "No such text" })).toBeVisible();
    await page.getByRole("link", { name: "All rules" }).click();
    await expect(page).toHaveURL(/\/alerts\?show=rules$/);
  }
});

test("callers without the scope admin cannot edit", async ({ page, startDaemon, watch }) => {
  watch.permit(/401 \(Unauthorized\)/, /403 \(Forbidden\)/);
  const daemon = await startDaemon(ACCESS);
  await addUser(daemon, "vera", { "*": "viewer" });
  await page.goto(`${daemon.url}/alerts?show=rules`);
  await fillLogin(page, "vera");
  await expect(page.getByRole("link", { name: "LoadHigh" })).toBeVisible();
  await expect(page.getByRole("heading", { name: "Rule files" })).toBeHidden();
  await page.getByRole("button", { name: "Receivers", exact: true }).click();
  await expect(page.getByRole("link", { name: "Edit receivers" })).toBeHidden();
});
