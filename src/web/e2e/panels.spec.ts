/** Panels of single values and states, rows that fold, repetitions, and folders. */
import { openSettled } from "./support/settled";
import { expect, test } from "./support/test";
import { NOW } from "./support/data";
import type { Daemon, Sample } from "./support/daemon";
import { HOUR, MINUTE } from "./support/zones";

const HOSTS = ["a", "b", "c"];

async function postValues(daemon: Daemon): Promise<void> {
  const samples: Sample[] = [];
  for (const [k, host] of HOSTS.entries()) {
    for (let time = NOW - HOUR; time < NOW; time += MINUTE) {
      const gauge = (metric: string, value: number, unit = "") =>
        samples.push({ metric, tags: { host }, unit, time, value });
      gauge("used", 70 + 12 * k, "percent");
      gauge("up", host === "c" && time >= NOW - 20 * MINUTE ? 0 : 1);
    }
  }
  await daemon.postSamples(samples);
}

const idOf = (title: string) => title.replace(/\W/g, "");
const panel = (title: string, kind: string, x: number, y: number, more: object = {}) => ({
  ...{ id: idOf(title), kind, x, y, w: 6, h: 6, title },
  queries: [{ kind: "metric", metric: "used", tags: "" }],
  ...more,
});
const row = (title: string, y: number, more: object = {}) => ({
  ...{ id: idOf(title), kind: "row", x: 0, y, w: 12, h: 1, title },
  ...more,
});
const thresholds = [{ level: "good" }, { from: 80, level: "warn" }, { from: 90, level: "bad" }];

async function saveBoard(daemon: Daemon, panels: object[]): Promise<void> {
  const variables = [{ name: "host", tag: "host", multi: true }];
  const dashboard = { schema: 1, title: "Own", folder: "Servers", variables, panels };
  await daemon.post("/api/v1/dashboards/own", { version: null, dashboard }, "PUT");
}

test("each kind of panel shows the values and their levels", async ({
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(/Failed to load resource.*query=rate/);
  const daemon = await startDaemon();
  await postValues(daemon);
  await saveBoard(daemon, [
    panel("Numbers", "stat", 0, 0, { thresholds }),
    panel("Gauges", "gauge", 6, 0, { thresholds, reduce: "max" }),
    panel("Bars", "bars", 0, 6),
    panel("Rows", "table", 6, 6, { thresholds }),
    panel("States", "states", 0, 12, { queries: [{ kind: "metric", metric: "up", tags: "" }] }),
    panel("Heat", "heatmap", 6, 12),
    panel("Lines", "chart", 0, 18, { thresholds }),
    panel("Nothing", "stat", 6, 18, { queries: [{ kind: "promql", expression: "missing" }] }),
    panel("Broken", "stat", 6, 24, { queries: [{ kind: "promql", expression: "rate(" }] }),
  ]);
  await page.setViewportSize({ width: 1440, height: 1500 });
  await openSettled(page, `${daemon.url}/dashboards/own`);
  const shown = (title: string) => page.locator(`[data-values="${title}"]`);
  await expect(shown("Numbers").getByRole("listitem")).toHaveText([
    "70 % (good)a",
    "82 % (warning)b",
    "94 % (bad)c",
  ]);
  await expect(shown("Gauges").locator(".level.num.bad")).toHaveText("94 % (bad)");
  await expect(shown("Bars").getByRole("listitem").first()).toContainText("c94 %");
  const cells = shown("Rows").locator("tbody tr");
  await expect(cells.first()).toHaveText("c94 % (bad)");
  await shown("Rows").getByRole("button", { name: "Last" }).click();
  await expect(cells.first()).toHaveText("a70 % (good)");
  await expect(shown("States").getByRole("img").last()).toHaveAccessibleName(
    "2 states, at last 0 (bad)",
  );
  await expect(shown("States").locator("rect.bad")).toHaveCount(1);
  const heat = page.locator('[data-chart="Heat"]');
  await heat.getByRole("button", { name: "More" }).click();
  await expect(page.getByRole("menuitemcheckbox", { name: "Heat map" })).toBeChecked();
  await page.keyboard.press("Escape");
  await shown("Broken").scrollIntoViewIfNeeded();
  await expect(shown("Broken").getByRole("alert")).toContainText("1:");
  await expect(shown("Nothing")).toContainText("No samples");
});

test("rows fold, and panels and rows repeat for the values of a variable", async ({
  page,
  startDaemon,
}) => {
  const daemon = await startDaemon();
  await postValues(daemon);
  const queries = [{ kind: "promql", expression: 'used{host="$host"}' }];
  await saveBoard(daemon, [
    row("Each $host", 0, { repeat: "host" }),
    panel("Used by $host", "stat", 0, 1, { queries }),
    row("Folded", 7, { folded: true }),
    panel("Hidden", "stat", 0, 8),
  ]);
  await openSettled(page, `${daemon.url}/dashboards/own`);
  const head = (name: string) => page.getByRole("button", { name, exact: true });
  await expect(page.locator(".row-head")).toHaveText(["Each a", "Each b", "Each c", "Folded"]);
  await expect(page.locator('[data-values="Used by b"]')).toContainText("82");
  await head("Each b").click();
  await expect(head("Each b")).toHaveAttribute("aria-expanded", "false");
  await expect(page.locator('[data-values="Used by b"]')).toHaveCount(0);
  await expect(page.locator('[data-values="Hidden"]')).toHaveCount(0);
  await head("Folded").click();
  await expect(page.locator('[data-values="Hidden"]')).toBeVisible();
  await openSettled(page, `${daemon.url}/dashboards/own?var.host=c`);
  await expect(page.locator(".row-head")).toHaveText(["Each c", "Folded"]);

  await openSettled(page, `${daemon.url}/dashboards`);
  const folder = page.getByRole("region", { name: "Servers" });
  await expect(folder.getByRole("link", { name: "Own" })).toBeVisible();
});

test("the editor changes the kind of a panel, its thresholds and its row", async ({
  page,
  startDaemon,
}) => {
  const daemon = await startDaemon();
  await postValues(daemon);
  await saveBoard(daemon, [panel("Used", "chart", 0, 0)]);
  await openSettled(page, `${daemon.url}/dashboards/own?edit=1`);
  await page.getByRole("button", { name: "Edit Used" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("combobox", { name: "Kind" }).selectOption("Gauge");
  await dialog.getByLabel("Thresholds").fill("90 ugly");
  await dialog.getByLabel("Thresholds").blur();
  await expect(dialog.getByRole("alert").first()).toContainText("“90 ugly” is not a threshold");
  await dialog.getByLabel("Thresholds").fill("80 warn, 90 bad");
  await dialog.getByRole("spinbutton", { name: "Max" }).fill("200");
  await dialog.getByRole("spinbutton", { name: "Max" }).blur();
  await dialog.getByLabel("Repeat for").selectOption("each $host");
  await expect(dialog.locator(".gauges .level.num.bad")).toBeVisible();
  await dialog.getByRole("button", { name: "Apply" }).click();
  await page.getByRole("button", { name: "Row", exact: true }).click();
  await dialog.getByLabel("Title").fill("Below");
  await dialog.getByRole("button", { name: "Add" }).click();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByRole("button", { name: "Edit", exact: true })).toBeVisible();
  const { dashboard } = (await daemon.request("/api/v1/dashboards/own")) as {
    dashboard: { panels: object[] };
  };
  expect(dashboard.panels).toMatchObject([
    {
      ...{ kind: "gauge", max: 200, repeat: "host" },
      thresholds: [
        { from: 80, level: "warn" },
        { from: 90, level: "bad" },
      ],
    },
    { kind: "row", title: "Below", x: 0, y: 6, w: 12, h: 1 },
  ]);
});
