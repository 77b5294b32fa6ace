/** Dashboards in files: shown, read-only, copied, faulty, linked, and read again. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Dashboard } from "../src/api/types";
import { chartOf } from "./support/charts";
import type { Daemon } from "./support/daemon";
import { expect, test as base } from "./support/test";
import { MINUTE } from "./support/zones";

const WEB: Dashboard = {
  schema: 1,
  title: "Web servers",
  folder: "From files",
  variables: [{ name: "host", tag: "host", metric: "queue_length", multi: true }],
  panels: [
    {
      ...{ id: "a", x: 0, y: 0, w: 6, h: 6, title: "Queue of $host", kind: "chart" },
      queries: [{ kind: "metric", metric: "queue_length", tags: "host=$host" }],
      link: "details",
    },
    {
      ...{ id: "b", x: 6, y: 0, w: 6, h: 6, title: "Now", kind: "stat", link: "details" },
      queries: [{ kind: "metric", metric: "queue_length", tags: "host=$host" }],
    },
    {
      ...{ id: "c", x: 0, y: 6, w: 12, h: 3, title: "Notes", kind: "text", link: "details" },
      text: "See the *details*.",
    },
  ],
};
const DETAILS: Dashboard = { ...WEB, title: "Details", panels: [] };

interface Folder {
  path: string;
  write: (name: string, content: unknown) => Promise<void>;
}

const test = base.extend<{ folder: Folder; daemonWithFiles: Daemon }>({
  folder: async ({}, use) => {
    const path = await mkdtemp(join(tmpdir(), "granary-dashboards-"));
    const write = (name: string, content: unknown) =>
      writeFile(
        join(path, name),
        typeof content === "string" ? content : JSON.stringify(content, null, 2),
      );
    await write("web.json", WEB);
    await write("details.json", DETAILS);
    await write("broken.json", { ...DETAILS, panels: [{ kind: "chart" }] });
    await write("grafana.json", { title: "Node", schemaVersion: 39, panels: [] });
    await use({ path, write });
    await rm(path, { recursive: true });
  },
  daemonWithFiles: async ({ folder, startDaemon }, use) => {
    const daemon = await startDaemon({
      "granary.toml": `[server]\ndashboards_dir = '${folder.path}'\n`,
    });
    const now = Math.floor(Date.now() / MINUTE) * MINUTE;
    const samples = [1, 2, 3, 4].map((minute) => ({
      ...{ metric: "queue_length", tags: { host: "web1" } },
      ...{ time: now - minute * MINUTE, value: minute },
    }));
    await daemon.postSamples(samples);
    await use(daemon);
  },
});

test("dashboards in files are read-only, and a faulty file is named", async ({
  page,
  folder,
  daemonWithFiles: daemon,
}) => {
  await page.goto(`${daemon.url}/dashboards`);
  const faults = page.getByRole("region", { name: "Faulty files" });
  await expect(faults).toContainText("2 files have faults");
  await expect(faults).toContainText("broken.json: panels[0]: missing field");
  await expect(faults).toContainText("grafana.json: it is a dashboard of Grafana: import it");
  const entry = page.getByRole("listitem").filter({ hasText: "Web servers" });
  await expect(entry).toContainText("from web.json");
  await expect(entry).toContainText("File");
  await expect(entry.getByRole("button")).toHaveCount(0);
  expect(await daemon.log()).toContain("broken.json");
  const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
  expect(metrics).toMatch(/^granary_dashboard_files_failed 2$/m);
  expect(metrics).toMatch(/^granary_dashboard_files 2$/m);

  await entry.getByRole("link").click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Web servers web.json");
  await page.getByRole("button", { name: "Edit a copy" }).click();
  await expect(page.getByRole("button", { name: "Save", exact: true })).toHaveCount(0);
  await page.getByRole("button", { name: "Save as…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Save", exact: true }).click();
  await expect(page).toHaveURL(/\/dashboards\/web-servers-copy$/);
  await expect(page.getByRole("button", { name: "Edit", exact: true })).toBeVisible();

  // The files are read again after a change: a mended file, and a new title.
  await folder.write("broken.json", { ...DETAILS, title: "Mended" });
  await folder.write("web.json", { ...WEB, title: "Web servers of today" });
  await daemon.request("/-/reload", { method: "POST" });
  await page.goto(`${daemon.url}/dashboards`);
  await expect(page.getByRole("link", { name: "Mended" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Web servers of today" })).toBeVisible();
  await expect(faults).toContainText("1 file has a fault");
});

test("a changed file is read without a reload", async ({ folder, daemonWithFiles: daemon }) => {
  const titles = async () => {
    const { dashboards } = (await daemon.request("/api/v1/dashboards")) as {
      dashboards: { title: string }[];
    };
    return dashboards.map(({ title }) => title);
  };
  expect(await titles()).toContain("Details");
  await folder.write("details.json", { ...DETAILS, title: "Details of today" });
  await expect.poll(titles, { timeout: 30_000 }).toContain("Details of today");
});

test("a panel opens another dashboard with the same variables and range", async ({
  page,
  daemonWithFiles: daemon,
}) => {
  await page.goto(`${daemon.url}/dashboards/web?var.host=web1&range=6h`);
  const link = (title: string) =>
    page.getByRole("link", { name: `${title}: open the dashboard details` });
  await expect(link("Now")).toBeVisible();
  await expect(link("Notes")).toBeVisible();
  await expect(chartOf(page, "Queue of web1")).toBeVisible();
  await link("Queue of web1").click();
  await expect(page.getByRole("heading", { level: 1 })).toContainText("Details");
  await expect(page).toHaveURL(/\/dashboards\/details\?range=6h&resolution=1m&var\.host=web1$/);
  await expect(page.getByRole("button", { name: /host.*web1/ })).toBeVisible();

  // The editor of a panel offers the dashboards.
  await page.goto(`${daemon.url}/dashboards/web?edit=1`);
  await page.getByRole("button", { name: "Edit Now" }).click();
  const choice = page.getByRole("dialog").getByRole("combobox", { name: "Link" });
  await expect(choice).toHaveValue("details");
  await choice.selectOption({ label: "Web servers" });
  await page.getByRole("button", { name: "Apply" }).click();
  await expect(page.getByRole("link", { name: "Now: open the dashboard web" })).toBeVisible();
});
