/** Alerts: active alerts, acknowledgements, silences, history, and rules made from charts. */
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { Page } from "@playwright/test";
import type { Alert } from "../src/api/types";
import { chooseFromMenu, recordDrawnTexts } from "./support/charts";
import { freePort, type Daemon } from "./support/daemon";
import { HOST, hostSamples, ping } from "./support/data";
import { drawnChart } from "./support/drawn";
import { eventually } from "./support/eventually";
import { expect, test } from "./support/test";

/** Sends a daemon the samples that its rules evaluate, and waits until an alert fires. */
async function fireAlerts(daemon: Daemon): Promise<void> {
  await daemon.postSamples(hostSamples(HOST, 1, 0));
  await eventually("LoadHigh fires", async () => {
    const { data } = (await daemon.request("/api/v1/alerts")) as { data: { alerts: Alert[] } };
    return data.alerts.some(({ labels }) => labels["alertname"] === "LoadHigh");
  });
}

/** Returns the rows of alerts or silences that contain a text. */
const alertRows = (page: Page, text: string) =>
  page.locator(".alert-row").filter({ hasText: text });

test("firing and pending alerts are listed with their labels, value and severity", async ({
  page,
}) => {
  await page.goto("/");
  await page.getByRole("link", { name: /^Alerts.*rules firing/ }).click();
  await expect(page).toHaveURL(/\/alerts$/);
  const row = alertRows(page, "LoadHigh");
  await expect(row).toContainText("Firing");
  await expect(row).toContainText("warning");
  await expect(row).toContainText(`host=${HOST}`);
  const value = await row.locator("dd").first().textContent();
  expect(Number(value)).toBeGreaterThan(0.2);
  await expect(row).toContainText(`Load of ${HOST} is`);
  await expect(row.locator("dd").nth(1)).toContainText("ago");
  await expect(alertRows(page, "MemoryShort")).toContainText("Pending");

  await page.getByRole("button", { name: /^Pending/ }).click();
  await expect(row).toBeHidden();
  await expect(page).toHaveURL(/state=pending/);
  await page.reload();
  await expect(page.locator(".alert-row")).toHaveCount(1);
  await page.getByRole("button", { name: /^Pending/ }).click();
  await expect(page.locator(".alert-row")).toHaveCount(2);
  await page.getByRole("searchbox", { name: "Search alerts" }).fill("load warning");
  await expect(page.locator(".alert-row")).toHaveCount(1);
  await expect(row).toBeVisible();
});

test("rules are listed by group, with the errors of failing rules", async ({ page }) => {
  await page.goto("/alerts?show=rules");
  const rule = (name: string) => page.getByRole("row").filter({ hasText: name });
  await expect(rule("host:load:last")).toContainText("Recording");
  await expect(rule("LoadHigh")).toContainText("1 firing");
  await expect(rule("Quiet")).toContainText("Inactive");
  await expect(rule("Impossible")).toContainText("Failing");
  await expect(rule("Impossible")).toContainText("many-to-many");
  await expect(page.getByText(/every 1 s, .* ago, took/).first()).toBeVisible();
});

test("a rule shows its measured value, its threshold, and its history", async ({ page }) => {
  const texts = await recordDrawnTexts(page);
  await page.goto("/alerts?rule=hosts/LoadHigh");
  await drawnChart(page, "Measured value");
  await expect.poll(texts).toContain("LoadHigh > 0.2");
  const history = page.getByRole("region", { name: "History" });
  const row = history.getByRole("row").filter({ hasText: "Fired" });
  await expect(row).toContainText("ongoing, since");
  await expect(row).toContainText(`host=${HOST}`);
  const [value] = await row.getByRole("cell").nth(3).allTextContents();
  expect(Number(value)).toBeGreaterThan(0.2);
});

test("the threshold of an alert is drawn on the charts of its metric", async ({ page }) => {
  const texts = await recordDrawnTexts(page);
  await page.goto(`/hosts/${HOST}?resolution=1m&range=1h`);
  await drawnChart(page, "Load");
  await expect.poll(texts).toContain("LoadHigh");
  // On another host's chart, the rule for all hosts is drawn, and the rule for HOST is not.
  await page.goto("/hosts/web2?resolution=1m&range=1h");
  await drawnChart(page, "Load");
  await expect.poll(texts).toContain("Quiet");
  expect(await texts()).not.toContain("LoadHigh");
});

test("an acknowledgement is visible to everybody until it is withdrawn", async ({
  page,
  startDaemon,
}) => {
  const daemon = await startDaemon();
  await fireAlerts(daemon);
  await page.goto(`${daemon.url}/alerts`);
  const row = alertRows(page, "LoadHigh");
  await row.getByRole("button", { name: "Acknowledge" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("Ann");
  await dialog.getByLabel("Comment").fill("restarting");
  await dialog.getByRole("button", { name: "Acknowledge" }).click();
  await expect(row).toContainText(/Acknowledged by Ann.*restarting/);
  await page.reload();
  await row.getByRole("button", { name: "Acknowledged" }).click();
  await page.getByRole("button", { name: "Withdraw acknowledgement" }).click();
  await expect(row).not.toContainText("Acknowledged by");
});

test("an alert is silenced; the silence is listed and expired", async ({ page, startDaemon }) => {
  const daemon = await startDaemon();
  await fireAlerts(daemon);
  await page.goto(`${daemon.url}/alerts`);
  const row = alertRows(page, "LoadHigh");
  await row.getByRole("button", { name: "Silence" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Author").fill("Ann");
  await dialog.getByRole("button", { name: "Silence" }).click();
  await expect(dialog).toContainText("Enter a comment.");
  await dialog.getByLabel("Comment").fill("the disk is changed");
  await dialog.getByRole("button", { name: "Silence" }).click();
  await expect(row).toContainText("Silenced by Ann: the disk is changed");
  const storedSilences = (await daemon.request("/api/v2/silences")) as {
    matchers: { name: string }[];
  }[];
  expect(storedSilences[0]?.matchers.map(({ name }) => name)).toEqual([
    "alertname",
    "host",
    "severity",
  ]);

  await page.getByRole("group", { name: "Lists" }).getByText("Silences").click();
  const silence = alertRows(page, "the disk is changed");
  await expect(silence).toContainText("Active");
  await silence.getByRole("button", { name: "Expire" }).click();
  await dialog.getByRole("button", { name: "Expire" }).click();
  await expect(silence).toBeHidden();
  await page.getByLabel("Show expired").check();
  await expect(silence).toContainText("Expired");
  await page.getByRole("group", { name: "Lists" }).getByText("Alerts").click();
  await expect(row).toContainText("Firing");
});

test("a maintenance window recurs every week by the clock of its zone", async ({
  page,
  startDaemon,
}) => {
  const daemon = await startDaemon();
  await page.goto(`${daemon.url}/alerts?show=silences`);
  await page.getByRole("button", { name: "New silence" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name of label 1").fill("host");
  await dialog.getByLabel("Value of host").fill("db.*");
  await dialog.getByLabel("Operator of host").selectOption("=~");
  await dialog.getByRole("button", { name: "Weekly" }).click();
  await dialog.getByRole("button", { name: "monday" }).click();
  await dialog.getByLabel("Start time").fill("22:30");
  await dialog.getByLabel("End time").fill("01:00");
  await dialog.getByLabel("Time zone").fill("Asia/Tokyo");
  await dialog.getByLabel("Author").fill("Ann");
  await dialog.getByLabel("Comment").fill("upgrades");
  await dialog.getByRole("button", { name: "Silence" }).click();
  const row = alertRows(page, "upgrades");
  await expect(row).toContainText("Mon, Sun 22:30–01:00 Asia/Tokyo");
  await expect(row).toContainText('host=~"db.*"');
  await row.getByRole("button", { name: "Edit" }).click();
  await dialog.getByRole("button", { name: "sunday" }).click();
  await dialog.getByRole("button", { name: "Save" }).click();
  await expect(row).toContainText("Mon 22:30–01:00 Asia/Tokyo");
});

test("a rule is made from a chart, checked by the daemon, and saved as a file", async ({
  page,
  watch,
}) => {
  watch.permit(/Failed to load resource.*rules\/check/);
  await page.goto(`/hosts/${HOST}?resolution=1m&range=1h`);
  await drawnChart(page, "Network received");
  await chooseFromMenu(page, "Network received", "Alert rule…");
  const dialog = page.getByRole("dialog", { name: "Alert rule" });
  await expect(dialog.getByLabel("Expression")).toHaveValue(
    `rate(system_network_bytes_in{host="${HOST}"}[5m])`,
  );
  await expect(dialog).toContainText("Enter the threshold");
  await dialog.getByLabel("Threshold").fill("90%");
  await expect(dialog).toContainText("The expression is in bytes, not percent");
  await dialog.getByLabel("Threshold").fill("5MB/s");
  await expect(dialog).toContainText("equals 5000000 bytes");
  await expect(dialog.getByLabel("Rule file")).toContainText("[5m]) > 5000000");
  await dialog.getByLabel("Threshold").fill("1e6");
  await expect(dialog.getByRole("status")).toContainText("Valid.");
  await dialog.getByLabel("Expression").fill("rate(");
  await expect(dialog.getByRole("alert")).toContainText("NetworkReceived");
  await dialog.getByLabel("Expression").fill("rate(system_network_bytes_in[5m])");
  await expect(dialog.getByRole("status")).toContainText("Valid.");
  const downloadEvent = page.waitForEvent("download");
  await dialog.getByRole("button", { name: "Save file" }).click();
  const text = await readFile(await (await downloadEvent).path(), "utf8");
  expect(text).toContain('expr: "rate(system_network_bytes_in[5m]) > 1e6"');
  expect(text).toBe(await dialog.getByLabel("Rule file").textContent());
  await page.keyboard.press("Escape");
  await expect(dialog).toBeHidden();
  // A chart of several metrics requests the numbers that the rule uses.
  await chooseFromMenu(page, "CPU", "Alert rule…");
  await expect(dialog.getByLabel("Expression")).toHaveValue(
    /^100 \* rate\(system_cpu_user\{host="[^"]*"\}\[5m\]\) \/ \(rate.*system_cpu_idle/,
  );
  await dialog.getByLabel("Threshold").fill("90%");
  await expect(dialog.getByLabel("Rule file")).toContainText("> 90");
  await expect(dialog.getByRole("status")).toContainText("Valid.");
});

test("without a receiver, the page warns and shows how to add a receiver", async ({
  page,
  startDaemon,
}) => {
  const daemonWithoutReceivers = await startDaemon();
  await page.goto(`${daemonWithoutReceivers.url}/alerts`);
  const card = page.getByRole("region", { name: "No receivers" });
  await expect(card).toContainText("6 rules have alerts, but notifications have no destination");
  await expect(card).toContainText('notifications = "/etc/granary/notifications.yml"');
  const firing = page.getByRole("button", { name: /^Firing/ });
  await expect(firing).toContainText("not sent");
  await page.goto(`${daemonWithoutReceivers.url}/status`);
  const health = page.getByRole("region", { name: "Health" });
  await expect(health).toContainText("no receiver: 6 rules have alerts");
  await expect(health).toContainText("Serving, with warnings");

  const withReceiver = await startDaemon({
    "receivers.yml":
      "route: {receiver: duty}\nreceivers:\n- name: duty\n  webhook_configs: [{url: 'http://127.0.0.1:9/'}]\n",
  });
  await page.goto(`${withReceiver.url}/alerts`);
  await expect(firing).toContainText("sent to receivers");
  await expect(card).toBeHidden();
});

test("without rules, the page shows how to add rules", async ({ page, startDaemon }) => {
  const daemon = await startDaemon({ "rules.yml": "groups: []\n" });
  await page.goto(`${daemon.url}/alerts`);
  await expect(page.getByText("changes to rule files need a reload, too")).toBeVisible();
  await page.goto(`${daemon.url}/alerts?show=rules`);
  await expect(page.getByText("changes to rule files need a reload, too")).toBeVisible();
});

test("a link to a rule finds each severity, and links to the others", async ({
  page,
  startDaemon,
}) => {
  const rules = ["warning", "critical"].map(
    (severity) => `  - {alert: DiskFull, expr: vector(1) > 2, labels: {severity: ${severity}}}\n`,
  );
  const daemon = await startDaemon({
    "rules.yml": `groups:\n- name: disks\n  rules:\n${rules.join("")}`,
  });
  await page.goto(`${daemon.url}/alerts?rule=disks/DiskFull/critical`);
  const others = page.getByRole("navigation", { name: "Rules named DiskFull" });
  const current = others.locator("[aria-current]");
  await expect(current).toHaveText("critical");
  await others.getByRole("link", { name: "warning" }).click();
  await expect(page).toHaveURL(/rule=disks%2FDiskFull%2Fwarning$/);
  await expect(current).toHaveText("warning");
  await page.goto(`${daemon.url}/alerts?rule=disks/DiskFull`);
  await expect(current).toHaveText("warning");
});

test("the fleet shows hosts with urgent alerts first, and who was notified", async ({
  page,
  startDaemon,
}) => {
  const expr = (host: string) => `'last_over_time(heat{host="${host}"}[3h]) > 0'`;
  const rules = [
    `  - {alert: Warm, expr: ${expr("a-warm")}, labels: {severity: warning}}\n`,
    `  - {alert: Hot, expr: ${expr("b-hot")}, labels: {severity: critical}}\n`,
  ];
  // Nobody listens on the second port.
  const [heard, unheard] = [await freePort(), await freePort()];
  const server = createServer((_, answer) => answer.end()).listen(heard, "127.0.0.1");
  const receiver = (port: number) => `{url: 'http://127.0.0.1:${port}'}`;
  const daemon = await startDaemon({
    "rules.yml": `groups:\n- name: own\n  interval: 1s\n  rules:\n${rules.join("")}`,
    "receivers.yml":
      "route: {receiver: ops, group_wait: 0s, group_by: [alertname]}\nreceivers:\n- name: ops\n" +
      `  webhook_configs: [${receiver(heard)}, ${receiver(unheard)}]\n`,
  });
  await daemon.postPings(["a-warm", "b-hot", "c-well"].map((host) => ping(host)));
  // The week is evaluated every 5 minutes, so at least one evaluation is later than the samples.
  const time = Date.now() - 10 * 60_000;
  await daemon.postSamples(
    ["a-warm", "b-hot"].map((host) => ({ metric: "heat", tags: { host }, time, value: 1 })),
  );
  await page.goto(daemon.url);
  const rows = page.getByRole("grid", { name: "Hosts" }).getByRole("row");
  // The fleet requests changes every 10 seconds.
  await expect(rows.nth(1)).toContainText("b-hot", { timeout: 20_000 });
  await expect(rows.nth(2)).toContainText("a-warm");
  await expect(rows.nth(3)).toContainText("c-well");
  await expect(rows.getByRole("link", { name: /^Alerts of/ })).toHaveCount(2);
  await page.getByRole("link", { name: "Alerts of b-hot: 1 critical" }).click();
  const row = alertRows(page, "Hot");
  await expect(row).toContainText("Sent to ops (webhook/0)", { timeout: 20_000 });
  await expect(row).toContainText("Not yet sent to ops (webhook/1)");
  await row.getByRole("link", { name: "Hot" }).click();
  const week = page.getByRole("region", { name: "Last 7 days" });
  await expect(week).toContainText("The rule would have fired 1 time on 1 series");
  server.close();
});

test("many alerts of a rule are one line, and a host lists its firing alerts", async ({
  page,
  startDaemon,
}) => {
  const rules = [
    "  - {alert: Added, expr: 'last_over_time(added[3h]) > 0', labels: {severity: info}}\n",
    "  - {alert: Hot, expr: 'last_over_time(added{host=\"h2\"}[3h]) > 0', labels: {severity: critical}}\n",
  ];
  const daemon = await startDaemon({
    "rules.yml": `groups:\n- name: own\n  interval: 1s\n  rules:\n${rules.join("")}`,
  });
  await daemon.postSamples(
    Array.from({ length: 6 }, (_, k) => ({
      metric: "added",
      tags: { host: `h${k}` },
      time: Date.now() - 60_000,
      value: 1,
    })),
  );
  await eventually("all alerts fire", async () => {
    const { data } = (await daemon.request("/api/v1/alerts")) as { data: { alerts: Alert[] } };
    return data.alerts.filter(({ state }) => state === "firing").length === 7;
  });
  await page.goto(`${daemon.url}/alerts`);
  const group = page.locator(".alert-group");
  await expect(group).toContainText("Added× 6info6 firing");
  await expect(page.locator(".alert-row")).toHaveCount(1);
  await group.locator("summary").click();
  await expect(page.locator(".alert-row")).toHaveCount(7);
  await page.getByRole("button", { name: "Silence all" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByLabel("Value of alertname")).toHaveValue("Added");
  await expect(dialog.getByLabel("Value of severity")).toHaveValue("info");
  await expect(dialog.getByLabel(/^Value of/)).toHaveCount(2);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Acknowledge all" }).click();
  await dialog.getByLabel("Name", { exact: true }).fill("Ann");
  await dialog.getByRole("button", { name: "Acknowledge", exact: true }).click();
  await expect(page.getByText("Acknowledged by Ann")).toHaveCount(6);
  const severity = (name: string) =>
    page.getByRole("group", { name: "Severity" }).getByRole("button", { name });
  await severity("critical").click();
  await expect(page).toHaveURL(/severity=critical/);
  await expect(group).toBeHidden();
  await expect(page.locator(".alert-row")).toHaveCount(1);
  await severity("info").click();
  await expect(group).toBeVisible();
  await expect(severity("critical")).toHaveAttribute("aria-pressed", "true");

  await page.goto(`${daemon.url}/hosts/h2`);
  const firing = page.getByRole("list", { name: "Firing alerts" });
  await expect(firing.getByRole("link")).toHaveText(["Hot", "Added", "2 firing"]);
  await firing.getByRole("link", { name: "Hot" }).click();
  await expect(page.getByRole("heading", { level: 2, name: "Hot" })).toBeVisible();
});
