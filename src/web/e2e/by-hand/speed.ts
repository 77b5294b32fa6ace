/**
 * The speed of the page and of Prometheus' page, on the same machine, with the same browser and
 * data. See benches/page_speed.sh.
 */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { boxOf } from "../support/charts";
import { measureOpening, quantile, summary, traceFrames } from "../support/clock";
import { HOST, hostSamples, ping } from "../support/data";
import { Daemon, freePort, type Sample } from "../support/daemon";
import { isChartDrawn } from "../support/drawn";
import { eventually } from "../support/eventually";
import { openSettled } from "../support/settled";
import { expect, test } from "../support/test";

const HOSTS = 20;
const FLEET = 5000;
const CHARTS = 12;

const rows: [string, string, string][] = [];

function addRow(what: string, granary: string, prometheus = "-"): void {
  rows.push([what, granary, prometheus]);
}

function hostsSamples(): Sample[] {
  const hosts = Array.from({ length: HOSTS }, (_, k) => (k === 0 ? HOST : `node${k}`));
  return hosts.flatMap((host, k) => hostSamples(host, 3, k));
}

function isFleetShown(): boolean {
  return document.querySelectorAll("[role=grid] [role=rowheader]").length > 10;
}

/** Returns whether Prometheus' classic page has drawn its graph. */
function isGraphDrawn(): boolean {
  return document.querySelectorAll(".rickshaw_graph svg path").length > 0;
}

const kib = (bytes: number) => `${(bytes / 1024).toFixed(0)} KiB`;

interface Prometheus {
  url: string;
  child: ChildProcess;
}

/** Starts Prometheus with the same data, in blocks made by promtool. */
async function startPrometheus(folder: string, all: readonly Sample[]): Promise<Prometheus> {
  // OpenMetrics requires the samples of a metric together, oldest first.
  const inOrder = [...all].sort((a, b) =>
    a.metric < b.metric ? -1 : a.metric > b.metric ? 1 : a.time - b.time,
  );
  const sampleLines = inOrder.map(({ metric, tags, time, value }) => {
    const labels = Object.entries(tags).map(([name, text]) => `${name}="${text}"`);
    return `${metric}{${labels.join()}} ${value} ${time / 1000}`;
  });
  const text = join(folder, "samples.om");
  writeFileSync(text, `${sampleLines.join("\n")}\n# EOF\n`);
  const data = join(folder, "prometheus");
  const result = spawnSync("promtool", ["tsdb", "create-blocks-from", "openmetrics", text, data]);
  if (result.status !== 0) throw new Error(result.stderr.toString());
  const settings = join(folder, "prometheus.yml");
  writeFileSync(settings, "global: {}\n");
  const url = `127.0.0.1:${await freePort()}`;
  const args = [`--config.file=${settings}`, `--storage.tsdb.path=${data}`];
  const child = spawn("prometheus", [...args, `--web.listen-address=${url}`], { stdio: "ignore" });
  const isReady = () =>
    fetch(`http://${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  await eventually("Prometheus is ready", isReady);
  return { url: `http://${url}`, child };
}

function graphUrl({ url }: Prometheus, expressions: string[]): string {
  const params = new URLSearchParams();
  expressions.forEach((expression, k) => {
    params.set(`g${k}.expr`, expression);
    params.set(`g${k}.tab`, "0");
    params.set(`g${k}.range_input`, "1h");
  });
  return `${url}/classic/graph?${params.toString()}`;
}

/** Stores a dashboard of twelve charts with twenty series each. */
async function storeDashboard(daemon: Daemon): Promise<void> {
  const metrics = ["system_load_1m", "system_memory_used", "system_network_bytes_in"];
  const panels = Array.from({ length: CHARTS }, (_, k) => ({
    id: `p${k}`,
    title: `Chart ${k + 1}`,
    x: (k % 4) * 3,
    y: Math.floor(k / 4) * 5,
    w: 3,
    h: 5,
    kind: "chart",
    queries: [{ kind: "metric", metric: metrics[k % metrics.length], tags: "" }],
  }));
  const dashboard = { schema: 1, title: "Twelve", range: "1h", resolution: "1m", panels };
  const body = { version: null, dashboard: { ...dashboard, variables: [] } };
  await daemon.post("/api/v1/dashboards/twelve", body, "PUT");
}

/** Returns the milliseconds from the end of a drag to the first frame of the selected range. */
async function measureZoom(page: Page): Promise<number> {
  const area = page.locator("[data-chart=Load]").getByRole("application");
  const { at, middle } = await boxOf(area);
  await page.evaluate(() => {
    delete window.shownAt;
    const firstTime = () => window.granaryCharts?.get("Load")?.times[0];
    const before = firstTime();
    const area = document.querySelector("[data-chart=Load] [role=application]");
    const startMeasuring = () => {
      const start = performance.now();
      const look = () => {
        if (firstTime() === before) requestAnimationFrame(look);
        else window.shownAt = performance.now() - start;
      };
      requestAnimationFrame(look);
    };
    area?.addEventListener("pointerup", startMeasuring, { once: true, capture: true });
  });
  await page.mouse.move(at(0.4), middle);
  await page.mouse.down();
  await page.mouse.move(at(0.6), middle, { steps: 3 });
  await page.mouse.move(at(0.8), middle);
  await page.mouse.up();
  await page.waitForFunction(() => window.shownAt !== undefined);
  return page.evaluate(() => window.shownAt ?? NaN);
}

/** Moves the pointer across a plot for about four seconds, one move per frame. */
async function sweepPointer(page: Page, box: Awaited<ReturnType<typeof boxOf>>): Promise<void> {
  for (let step = 0; step < 240; step++) {
    const part = 0.05 + 0.9 * Math.abs(((step / 60) % 2) - 1);
    await page.mouse.move(box.at(part), box.middle + 10 * Math.sin(step / 9));
  }
}

function framesSummary({ between, work }: { between: number[]; work: number[] }): string {
  const [at95, work95] = [quantile(between, 0.95).toFixed(1), quantile(work, 0.95).toFixed(1)];
  return `p95 ${at95} ms between, ${work95} ms of work (${between.length} frames)`;
}

test.afterAll(() => {
  const widths = [0, 1, 2].map((k) => Math.max(...rows.map((row) => row[k]?.length ?? 0)));
  const line = (row: string[]) => row.map((cell, k) => cell.padEnd(widths[k] ?? 0)).join("  ");
  console.log([["", "Granary", "Prometheus"], ...rows].map(line).join("\n"));
});

test("charts, beside Prometheus", async ({ browser, page, startDaemon, watch }) => {
  const daemon = await startDaemon();
  const all = hostsSamples();
  await daemon.postSamples(all);
  await storeDashboard(daemon);
  const prometheus = await startPrometheus(daemon.folder, all);
  watch.origins.push(prometheus.url);
  try {
    const hostPage = `${daemon.url}/hosts/${HOST}?resolution=1m&range=1h`;
    const prometheusPage = graphUrl(prometheus, [`system_load_1m{host="${HOST}"}`]);
    const [granaryTimes, prometheusTimes] = [
      await measureOpening(browser, hostPage, isChartDrawn),
      await measureOpening(browser, prometheusPage, isGraphDrawn),
    ];
    addRow("first chart drawn", summary(granaryTimes.times), summary(prometheusTimes.times));
    addRow(
      "weight of that load",
      `${kib(granaryTimes.bytes)} in ${granaryTimes.requests}`,
      `${kib(prometheusTimes.bytes)} in ${prometheusTimes.requests}`,
    );

    await openSettled(page, hostPage);
    const zooms: number[] = [];
    for (let k = 0; k < 15; k++) {
      await openSettled(page, hostPage.replace("1h", "6h"));
      await eventually("Load is drawn", () =>
        page.evaluate(() => window.granaryCharts?.has("Load") ?? false),
      );
      zooms.push(await measureZoom(page));
    }
    addRow("zoom", summary(zooms));

    await page.setViewportSize({ width: 1920, height: 1080 });
    await openSettled(page, `${daemon.url}/dashboards/twelve`);
    const isAllDrawn = () =>
      page.evaluate((charts) => window.granaryCharts?.size === charts, CHARTS);
    await eventually("all charts are drawn", isAllDrawn);
    const series = await page.evaluate(() =>
      [...(window.granaryCharts?.values() ?? [])].map(({ series }) => series.length),
    );
    expect(series).toEqual(new Array(CHARTS).fill(HOSTS));
    const area = page.locator('[data-chart="Chart 1"]').getByRole("application");
    const box = await boxOf(area);
    const frames = await traceFrames(page, () => sweepPointer(page, box));

    // Prometheus' page has no shared cursor: one graph with the series of one chart is compared.
    const prometheusTab = await (await browser.newContext()).newPage();
    await prometheusTab.goto(graphUrl(prometheus, ["system_load_1m"]));
    await eventually("the graph is drawn", () => prometheusTab.evaluate(isGraphDrawn));
    const graphBox = await boxOf(prometheusTab.locator(".rickshaw_graph").first());
    const graphFrames = await traceFrames(prometheusTab, () =>
      sweepPointer(prometheusTab, graphBox),
    );
    addRow(`cursor over ${CHARTS} charts of ${HOSTS} series`, framesSummary(frames));
    addRow(`cursor over one chart of ${HOSTS} series`, "-", framesSummary(graphFrames));
  } finally {
    prometheus.child.kill();
  }
});

test("a fleet of 5,000 hosts", async ({ browser, page, startDaemon }) => {
  const daemon = await startDaemon();
  const hosts = Array.from({ length: FLEET }, (_, k) => `node-${k}`);
  // The last hour of each host.
  for (let from = 0; from < FLEET; from += 100) {
    await daemon.postSamples(
      hosts.slice(from, from + 100).flatMap((host, k) => hostSamples(host, 1, k)),
    );
  }
  await daemon.postPings(hosts.map((host) => ping(host)));
  const fleet = await measureOpening(browser, daemon.url, isFleetShown);
  addRow("fleet of 5,000 shown", summary(fleet.times));
  addRow("weight of that load", `${kib(fleet.bytes)} in ${fleet.requests}`);
  await openSettled(page, daemon.url);
  await page.mouse.move(720, 600);
  const frames = await traceFrames(page, async () => {
    for (let step = 0; step < 200; step++) await page.mouse.wheel(0, 120);
  });
  addRow("scroll of the fleet", framesSummary(frames));
});

test("weight of all files", () => {
  const dist = join(import.meta.dirname, "../../dist");
  const files = readdirSync(dist, { recursive: true, encoding: "utf8" });
  const all = files.filter((name) => name.endsWith(".br"));
  const bytes = all.reduce((sum, name) => sum + statSync(join(dist, name)).size, 0);
  addRow("everything, compressed", `${kib(bytes)} in ${all.length}`);
});
