/** Dashboards: creation, editing by pointer and keyboard, saving, conflicts, variables. */
import { readFile } from "node:fs/promises";
import type { Page } from "@playwright/test";
import type { Dashboard, DashboardAnswer, Panel } from "../src/api/types";
import { HOST } from "./support/data";
import type { Daemon } from "./support/daemon";
import { drawnChart, chartTitles } from "./support/drawn";
import { eventually } from "./support/eventually";
import { expect, test } from "./support/test";

function chartPanel(id: string, place: Partial<Panel>, metric: string): Panel {
  const queries = [{ kind: "metric" as const, metric, tags: `host=${HOST}` }];
  return { id, x: 0, y: 0, w: 6, h: 7, title: id, ...place, kind: "chart", queries };
}

const TWO_CHARTS: Dashboard = {
  schema: 1,
  title: "Two charts",
  range: "6h",
  resolution: "1m",
  variables: [],
  panels: [
    chartPanel("left", { x: 0 }, "system_load_1m"),
    chartPanel("right", { x: 6 }, "system_memory_used"),
  ],
};

/** Saves a dashboard under a new name and opens it. */
async function saveAndOpen(
  page: Page,
  daemon: Daemon,
  name: string,
  dashboard = TWO_CHARTS,
): Promise<string> {
  const unique = `${name}-${Date.now().toString(36)}`;
  await daemon.post(`/api/v1/dashboards/${unique}`, { version: null, dashboard }, "PUT");
  await page.goto(`/dashboards/${unique}`);
  await expect(page.getByRole("heading", { level: 1 })).toContainText(dashboard.title);
  return unique;
}

async function storedDashboard(daemon: Daemon, name: string): Promise<DashboardAnswer> {
  return (await daemon.request(`/api/v1/dashboards/${name}`)) as DashboardAnswer;
}

function placeOf({ dashboard }: DashboardAnswer, id: string) {
  const panel = dashboard.panels.find((panel) => panel.id === id);
  return panel && { x: panel.x, y: panel.y, w: panel.w, h: panel.h };
}

const clickButton = (page: Page, name: string) =>
  page.getByRole("button", { name, exact: true }).first().click();

async function save(page: Page): Promise<void> {
  await clickButton(page, "Save");
  await expect(page.getByRole("button", { name: "Edit", exact: true })).toBeVisible();
}

test("a dashboard is created, saved, and present after a reload", async ({ page, daemon }) => {
  await page.goto("/dashboards");
  await clickButton(page, "New dashboard");
  const title = `Made here ${Date.now().toString(36)}`;
  await page.getByRole("textbox", { name: "Title" }).fill(title);
  await clickButton(page, "Create");
  await expect(page).toHaveURL(/\/dashboards\/made-here-.*edit=1/);
  await clickButton(page, "Chart");
  await page.getByRole("combobox", { name: "Metric of query A" }).fill("load 5m");
  await page.getByRole("option", { name: /system_load_5m/ }).click();
  await page.getByRole("dialog").getByRole("textbox", { name: "Title" }).fill("Load here");
  await clickButton(page, "Add");
  await clickButton(page, "Text");
  await page.getByRole("dialog").getByRole("textbox", { name: "Text" }).fill("**Ask** the *team*");
  await clickButton(page, "Add");
  await save(page);
  await page.reload();
  expect(Object.keys((await drawnChart(page, "Load here")).series).length).toBeGreaterThan(2);
  await expect(page.locator(".text-panel strong")).toHaveText("Ask");
  const name = new URL(page.url()).pathname.split("/").at(-1) ?? "";
  const { version, dashboard } = await storedDashboard(daemon, name);
  expect(version).toBeGreaterThan(1);
  expect(dashboard.title).toBe(title);
  expect(dashboard.panels).toHaveLength(2);
});

test("panels are dragged and resized by the pointer", async ({ page, daemon }) => {
  const name = await saveAndOpen(page, daemon, "pointer");
  await clickButton(page, "Edit");
  const grip = page.getByRole("button", { name: /^Move left/ });
  const panel = page.locator(".panel").filter({ has: grip });
  const bar = panel.locator(".panel-bar");
  const box = async (locator = panel) => {
    const bounds = await locator.boundingBox();
    if (!bounds) throw new Error("the element is not visible");
    return bounds;
  };
  const from = await box(bar);
  const column = (await box(page.locator(".grid"))).width / 12;
  await page.mouse.move(from.x + from.width / 2, from.y + 8);
  await page.mouse.down();
  await page.mouse.move(from.x + from.width / 2 + 3 * column, from.y + 8 + 120, { steps: 8 });
  await page.mouse.move(from.x + from.width / 2 + 6 * column, from.y + 8 + 7 * 40, { steps: 8 });
  await page.mouse.up();
  const corner = await box(panel.locator(".panel-corner"));
  await page.mouse.move(corner.x + corner.width / 2, corner.y + corner.height / 2);
  await page.mouse.down();
  await page.mouse.move(corner.x - 2 * column, corner.y + 80, { steps: 8 });
  await page.mouse.up();
  await save(page);
  const left = placeOf(await storedDashboard(daemon, name), "left");
  expect(left?.x).toBe(6);
  expect(left?.y).toBeGreaterThan(0);
  expect(left?.w).toBe(4);
  expect(left?.h).toBeGreaterThan(7);
});

test("a panel is resized by the keyboard, and a change is undone", async ({ page, daemon }) => {
  const name = await saveAndOpen(page, daemon, "keys");
  await page.goto(`/dashboards/${name}?edit=1`);
  const grip = page.getByRole("button", { name: /^Move left/ });
  await grip.focus();
  await page.keyboard.press("Shift+ArrowDown");
  await page.keyboard.press("Shift+ArrowLeft");
  await page.keyboard.press("Shift+ArrowLeft");
  await expect(grip).toBeFocused();
  await page.getByRole("button", { name: "Undo the last change" }).focus();
  await page.keyboard.press("Enter");
  const saveButton = page.getByRole("button", { name: "Save", exact: true });
  await saveButton.focus();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("button", { name: "Edit", exact: true })).toBeVisible();
  expect(placeOf(await storedDashboard(daemon, name), "left")).toEqual({ x: 0, y: 0, w: 5, h: 8 });
});

test("of two editors of a version, the second to save resolves the conflict", async ({
  page,
  context,
  daemon,
  watch,
}) => {
  watch.permit(/409 \(Conflict\)/);
  const name = await saveAndOpen(page, daemon, "conflict");
  const otherPage = await context.newPage();
  for (const [editor, title] of [
    [otherPage, "Theirs"],
    [page, "Mine"],
  ] as const) {
    await editor.goto(`/dashboards/${name}?edit=1`);
    await editor.getByRole("textbox", { name: "Title of the dashboard" }).fill(title);
    await editor.keyboard.press("Enter");
  }
  await save(otherPage);
  await clickButton(page, "Save");
  const dialog = page.getByRole("dialog", { name: "Dashboard was changed" });
  await expect(dialog).toContainText("Theirs");
  expect((await storedDashboard(daemon, name)).dashboard.title).toBe("Theirs");

  await dialog.getByRole("button", { name: /^Overwrite version/ }).click();
  await expect(page.getByRole("heading", { level: 1 })).toContainText("Mine");
  const storedTitle = async () => (await storedDashboard(daemon, name)).dashboard.title;
  await expect.poll(storedTitle).toBe("Mine");
});

test("in a conflict, the reader can choose the other version", async ({ page, daemon, watch }) => {
  watch.permit(/409 \(Conflict\)/);
  const name = await saveAndOpen(page, daemon, "theirs");
  await page.goto(`/dashboards/${name}?edit=1`);
  await page.getByRole("textbox", { name: "Title of the dashboard" }).fill("Mine");
  await page.keyboard.press("Enter");
  const { version } = await storedDashboard(daemon, name);
  const otherVersion = { version, dashboard: { ...TWO_CHARTS, title: "Theirs" } };
  await daemon.post(`/api/v1/dashboards/${name}`, otherVersion, "PUT");
  await clickButton(page, "Save");
  await clickButton(page, "Discard mine");
  await expect(page.getByRole("heading", { level: 1 })).toContainText("Theirs");
});

test("an exported dashboard is imported unchanged", async ({ page, daemon }) => {
  const name = await saveAndOpen(page, daemon, "round-trip");
  await page.getByRole("button", { name: "More about this dashboard" }).click();
  const downloadEvent = page.waitForEvent("download");
  await page.getByRole("menuitem", { name: "Export as JSON" }).click();
  const file = await (await downloadEvent).path();
  expect(JSON.parse(await readFile(file, "utf8"))).toEqual(
    (await storedDashboard(daemon, name)).dashboard,
  );

  await page.goto("/dashboards");
  await clickButton(page, "Import");
  await page.getByRole("dialog").locator("input[type=file]").setInputFiles(file);
  await page.getByRole("textbox", { name: "Name in the address" }).fill(`${name}-2`);
  await page.getByRole("dialog").getByRole("button", { name: "Import", exact: true }).click();
  await expect(page).toHaveURL(`/dashboards/${name}-2`);
  expect((await storedDashboard(daemon, `${name}-2`)).dashboard).toEqual(
    (await storedDashboard(daemon, name)).dashboard,
  );
});

test("a dashboard of Grafana is imported, with what it lacks, and drawn", async ({
  page,
  daemon,
  watch,
}) => {
  watch.permit(/status of 400/);
  const gridPos = { x: 0, y: 0, w: 12, h: 8 };
  const panel = (type: string, title: string, expr: string) => ({
    ...{ type, title, gridPos },
    targets: [{ expr, legendFormat: "{{host}}", refId: "A" }],
  });
  const grafana = {
    schemaVersion: 41,
    title: "From Grafana",
    templating: {
      list: [{ name: "node", type: "query", query: "label_values(system_load_1m, host)" }],
    },
    panels: [
      panel("timeseries", "Load", 'avg_over_time(system_load_1m{host="$node"}[$__interval])'),
      panel("timeseries", "Wrong", "topk(a, b, c)"),
      panel("gauge", "Load now", 'system_load_1m{host=~"$node"}'),
      panel("nodeGraph", "Nodes", 'system_load_5m{host=~"$node"}'),
    ],
  };
  await page.goto("/dashboards");
  await clickButton(page, "Import");
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "JSON" }).fill(JSON.stringify(grafana));
  await expect(dialog).toContainText("4 panels to import");
  await expect(dialog).toContainText(/Rejected expressions \(parse error: .*\): Wrong/);
  await expect(dialog).toContainText("Panels of type nodeGraph show lines: Nodes");
  await dialog.getByRole("button", { name: "Import", exact: true }).click();
  await expect(page).toHaveURL("/dashboards/from-grafana");
  const { panels } = (await storedDashboard(daemon, "from-grafana")).dashboard;
  expect(panels.map(({ title }) => title)).toEqual(["Load", "Wrong", "Load now", "Nodes"]);
  await expect(
    page.locator('[data-values="Load now"]').locator(".gauges li").first(),
  ).toBeVisible();
  for (const title of ["Load", "Nodes"]) {
    const drawn = await drawnChart(page, title);
    expect(Object.keys(drawn.series).length).toBeGreaterThan(0);
  }
});

test("variables are in the address and filter the charts", async ({ page, daemon }) => {
  const queries = [{ kind: "metric" as const, metric: "system_load_1m", tags: "host=$host" }];
  const panel: Panel = { ...chartPanel("load", {}, ""), kind: "chart", queries };
  await saveAndOpen(page, daemon, "variables", {
    ...TWO_CHARTS,
    variables: [{ name: "host", tag: "host", metric: "system_load_1m", multi: false }],
    panels: [panel],
  });
  await page.getByRole("button", { name: /^host/ }).click();
  await page.getByRole("radio", { name: "web2" }).check();
  await expect(page).toHaveURL(/var\.host=web2/);
  const hosts = async () => Object.keys((await drawnChart(page, "load")).series).join();
  await eventually("only web2 is drawn", async () => (await hosts()).includes('host="web2"'));
  expect(await hosts()).not.toContain(HOST);
  await page.reload();
  expect(await hosts()).toContain('host="web2"');
});

test("the built-in dashboards are drawn and cannot be edited", async ({ page, daemon }) => {
  const { dashboards } = (await daemon.request("/api/v1/dashboards")) as {
    dashboards: { name: string; builtin: boolean }[];
  };
  const builtin = dashboards.filter((entry) => entry.builtin);
  expect(builtin.length).toBeGreaterThanOrEqual(3);
  const sample = { tags: { host: "db1:27017" }, time: Date.now(), value: 1 };
  const metrics = ["mongodb_up", "mongodb_connections"];
  await daemon.postSamples(metrics.map((metric) => ({ metric, ...sample })));
  for (const { name } of builtin) {
    await page.goto(`/dashboards/${name}`);
    await eventually("a chart is drawn", async () => (await chartTitles(page)).length > 0);
    await expect(page.getByRole("button", { name: "Edit a copy" })).toBeVisible();
  }
});
