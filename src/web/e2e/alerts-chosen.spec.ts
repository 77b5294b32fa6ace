/** Several alerts chosen at once, and the threshold of a rule on trial. */
import type { Page } from "@playwright/test";
import type { Alert, RuleGroup } from "../src/api/types";
import { areaOf, boxOf, nextFrame } from "./support/charts";
import { HOST } from "./support/data";
import { drawnChart } from "./support/drawn";
import { eventually } from "./support/eventually";
import { expect, test } from "./support/test";

const rule = (name: string, expression: string) =>
  `  - {alert: ${name}, expr: 'last_over_time(${expression}[3h]) > 0', labels: {severity: info}}\n`;
const RULES = `groups:\n- name: own\n  interval: 1s\n  rules:\n${[
  rule("Added", 'added{host=~"h[12]"}'),
  rule("Hot", 'added{host="h3"}'),
  rule("Full", 'added{host=~"h[456]"}'),
].join("")}`;

const row = (page: Page, text: string) => page.locator(".alert-row").filter({ hasText: text });

test("several alerts are chosen, acknowledged and silenced at once", async ({
  page,
  startDaemon,
}) => {
  const daemon = await startDaemon({ "rules.yml": RULES });
  await daemon.postSamples(
    [1, 2, 3, 4, 5, 6].map((k) => ({
      ...{ metric: "added", tags: { host: `h${k}` } },
      ...{ time: Date.now() - 60_000, value: 1 },
    })),
  );
  await eventually("all alerts fire", async () => {
    const { data } = (await daemon.request("/api/v1/alerts")) as { data: { alerts: Alert[] } };
    return data.alerts.filter(({ state }) => state === "firing").length === 6;
  });
  await page.goto(`${daemon.url}/alerts`);
  const boxes = page.getByRole("checkbox", { name: /^Select / });
  await expect(boxes).toHaveCount(6);
  const bar = page.getByRole("group", { name: "Selected alerts" });
  await expect(bar).toBeHidden();
  await boxes.nth(1).click();
  await expect(bar).toContainText("1 selected");
  await boxes.nth(3).click({ modifiers: ["Shift"] });
  await expect(bar).toContainText("3 selected");
  await expect(boxes.nth(2)).toBeChecked();
  await boxes.nth(2).press("Space");
  await expect(bar).toContainText("2 selected");
  await bar.getByRole("button", { name: "Select 6" }).click();
  await expect(bar).toContainText("6 selected");
  await bar.getByRole("button", { name: "Clear" }).click();
  await expect(bar).toBeHidden();

  await page.getByRole("checkbox", { name: "Select Added h1" }).check();
  await page.getByRole("checkbox", { name: "Select Hot h3" }).check();
  await bar.getByRole("button", { name: "Acknowledge" }).click();
  const dialog = page.getByRole("dialog", { name: "Acknowledge 2 alerts" });
  await dialog.getByLabel("Name", { exact: true }).fill("Ann");
  await dialog.getByRole("button", { name: "Acknowledge", exact: true }).click();
  await expect(page.getByText("Acknowledged by Ann")).toHaveCount(2);
  await expect(row(page, "host=h1")).toContainText("Acknowledged by Ann");
  await expect(row(page, "host=h3")).toContainText("Acknowledged by Ann");
  await expect(bar).toBeHidden();

  // A silence covers the chosen alerts, and reports the others that it covers.
  await page.getByRole("checkbox", { name: "Select Full h4" }).check();
  await page.getByRole("checkbox", { name: "Select Full h5" }).check();
  await bar.getByRole("button", { name: "Silence" }).click();
  const silence = page.getByRole("dialog", { name: "Silence alerts" });
  await expect(silence.getByLabel("Value of host")).toHaveValue("h4|h5");
  await expect(silence).toContainText("Covers 2 active alerts.");
  await silence.getByRole("button", { name: "Remove host" }).click();
  await expect(silence).toContainText("Covers 3 active alerts, 1 of them not selected.");
  await page.keyboard.press("Escape");
  await bar.getByRole("button", { name: "Silence" }).click();
  await silence.getByLabel("Comment").fill("the disks are changed");
  await silence.getByRole("button", { name: "Silence" }).click();
  await expect(page.getByText("Silenced by Ann: the disks are changed")).toHaveCount(2);
  await expect(row(page, "host=h6")).toContainText("Firing");
});

/** Moves the mouse down the middle of the chart until it is on the threshold; returns its height. */
async function thresholdAt(page: Page, title: string): Promise<number> {
  const area = areaOf(page, title);
  const box = await boxOf(area);
  for (let y = box.y + 1; y < box.y + box.height; y += 3) {
    await page.mouse.move(box.at(0.5), y);
    await nextFrame(page);
    if (await area.evaluate((element) => element.classList.contains("on-threshold"))) return y;
  }
  throw new Error("no threshold under the pointer");
}

test("the threshold of a rule is dragged, tried on the last week, and copied", async ({
  page,
  daemon,
}) => {
  await page.goto("/alerts?rule=hosts/LoadHigh");
  await drawnChart(page, "Measured value");
  const card = page.getByRole("region", { name: "Threshold" });
  const field = card.getByRole("spinbutton", { name: "Threshold >" });
  await expect(field).toHaveValue("0.2");
  await expect(card).not.toContainText("expr:");
  const week = page.getByRole("region", { name: "Last 7 days" });
  await expect(week).toContainText("The rule would have fired");

  const y = await thresholdAt(page, "Measured value");
  const { at } = await boxOf(areaOf(page, "Measured value"));
  await page.mouse.down();
  await page.mouse.move(at(0.4), y - 20, { steps: 4 });
  await page.mouse.move(at(0.4), y - 40, { steps: 4 });
  await page.mouse.up();
  const dragged = Number(await field.inputValue());
  expect(dragged).toBeGreaterThan(0.2);
  // The drag moved the threshold, and did not zoom.
  await expect(page).not.toHaveURL(/start=/);
  await expect(card).toContainText(
    `expr: "last_over_time(system_load_1m{host=\\"${HOST}\\"}[3h]) > ${dragged}"`,
  );
  await expect(card).toContainText("The rule is unchanged.");
  await expect(week).toContainText("With this threshold, the rule would");

  await field.fill("1000000");
  await field.press("Tab");
  await expect(week).toContainText("With this threshold, the rule would not have fired.");
  await card.getByRole("button", { name: "Reset" }).click();
  await expect(field).toHaveValue("0.2");
  await expect(week).toContainText("The rule would have fired");
  const { data } = (await daemon.request("/api/v1/rules")) as { data: { groups: RuleGroup[] } };
  const rules = data.groups.flatMap((group) => group.rules);
  expect(rules.find(({ name }) => name === "LoadHigh")?.query).toMatch(/> 0\.2$/);
});
