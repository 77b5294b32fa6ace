/** Percentiles and heat maps of histograms, in the explorer and on dashboards. */
import type { Page } from "@playwright/test";
import { areaOf, boxOf, chartOf, chooseFromMenu, legendRow, nextFrame } from "./support/charts";
import type { Daemon } from "./support/daemon";
import { NOW } from "./support/data";
import { chartOfAnswer, drawnChart } from "./support/drawn";
import { latencies, postLatencies } from "./support/histograms";
import { openSettled } from "./support/settled";
import { expect, test } from "./support/test";
import { HOUR, MINUTE } from "./support/zones";

const METRIC = "request_wait";
const PERCENTILES = ["p50", "p90", "p99", "p99.9"];
const EXPLORE = `/explore?metric=${METRIC}&resolution=1m&range=2h`;

async function startWithLatencies(startDaemon: () => Promise<Daemon>, hosts = ["a"]) {
  const daemon = await startDaemon();
  for (const host of hosts) await postLatencies(daemon, METRIC, { host }, 90);
  const gauge = { metric: "load", tags: { host: "a" }, time: NOW - 5 * MINUTE, value: 1 };
  await daemon.postSamples([gauge]);
  return daemon;
}

/** Points at a fraction of the width and of the height of a chart; returns the tip's texts. */
async function pointAt(page: Page, title: string, x: number, y: number) {
  const { at, ...box } = await boxOf(areaOf(page, title));
  await page.mouse.move(at(x), box.y + y * box.height);
  await nextFrame(page);
  const tip = chartOf(page, title).locator(".plot-tip");
  const rows = await tip.locator(".plot-tip-row:visible").allTextContents();
  return { rows, text: (await tip.textContent()) ?? "" };
}

test("a chart of histograms has percentiles, as the API answers them", async ({
  page,
  startDaemon,
}) => {
  const daemon = await startWithLatencies(startDaemon);
  await page.goto(daemon.url + EXPLORE);
  const drawn = await drawnChart(page, METRIC);
  const [start, end] = [drawn.times[0] ?? 0, drawn.times.at(-1) ?? 0];
  const range = { start: String(start), end: String(end + 1), resolution: "1m" };
  const answer = await daemon.chart({ metric: METRIC, ...range, display: PERCENTILES.join(",") });
  expect(drawn).toEqual(chartOfAnswer(answer));

  // The number is that of the observations, to one percent.
  const time = NOW - 20 * MINUTE;
  const sorted = latencies(time).sort((a, b) => a - b);
  const shownAt = (name: string) =>
    drawn.series[`${METRIC}{host="a"} ${name}`]?.[drawn.times.indexOf(time)] ?? NaN;
  expect(Math.abs(shownAt("p90") / (sorted[179] ?? NaN) - 1)).toBeLessThan(0.01);
  for (const name of PERCENTILES) await expect(legendRow(page, METRIC, name)).toBeVisible();
  const { rows } = await pointAt(page, METRIC, 0.6, 0.5);
  expect(rows).toHaveLength(4);
  expect(rows[0]).toMatch(/^p99\.9[\d.]+ m?s$/);
  expect(rows[3]).toMatch(/^p50[\d.]+ m?s$/);
});

test("the choice of the value draws a heat map, which tells the observations of a cell", async ({
  page,
  startDaemon,
}) => {
  const daemon = await startWithLatencies(startDaemon, ["a", "b"]);
  await page.goto(daemon.url + EXPLORE);
  await drawnChart(page, METRIC);
  await page.getByRole("combobox", { name: "Value", exact: true }).selectOption("Heat map");
  await expect(page).toHaveURL(/number=distribution/);
  await expect(legendRow(page, METRIC, "p99.9")).toBeVisible();
  await chartOf(page, METRIC).getByRole("button", { name: "More" }).click();
  const item = (name: string) => page.getByRole("menuitemcheckbox", { name, exact: true });
  await expect(item("Heat map")).toBeChecked();
  await expect(item("Logarithmic axis")).toBeChecked();
  await page.keyboard.press("Escape");
  // Both hosts have 200 observations a minute.
  const texts: string[] = [];
  for (let part = 0.05; part < 1; part += 0.05)
    texts.push((await pointAt(page, METRIC, 0.6, part)).text);
  const cells = texts.flatMap(
    (text) => /([\d.]+) of (\d+) observations/.exec(text)?.slice(1) ?? [],
  );
  expect(cells.length).toBeGreaterThan(10);
  expect(new Set(cells.filter((_, k) => k % 2 === 1))).toEqual(new Set(["400"]));
});

test("the menu of a chart of percentiles draws their heat map, and the lines again", async ({
  page,
  startDaemon,
}) => {
  const daemon = await startWithLatencies(startDaemon, ["a", "b", "c"]);
  await page.goto(daemon.url + EXPLORE);
  const lines = await drawnChart(page, METRIC);
  expect(Object.keys(lines.series).map((key) => key.split(" ")[1])).toEqual(["p99", "p99", "p99"]);
  await chooseFromMenu(page, METRIC, "Heat map");
  await expect(legendRow(page, METRIC, "p99.9")).toBeVisible();
  await expect(page).toHaveURL(/heat\.explore=1/);
  await chooseFromMenu(page, METRIC, "Heat map");
  await expect
    .poll(async () => Object.keys((await drawnChart(page, METRIC)).series))
    .toHaveLength(3);
});

test("a percentile of a gauge fails alone, with the remedy", async ({
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(/Failed to load resource/);
  const daemon = await startWithLatencies(startDaemon);
  await page.goto(`${daemon.url + EXPLORE}&metric.2=load&number=p95`);
  await expect(page.getByRole("status").filter({ hasText: "needs histograms" })).toHaveText(
    "display=p95 needs histograms, but load is a gauge: choose another number",
  );
  const title = `${METRIC}, load`;
  expect(Object.keys((await drawnChart(page, title)).series)).toEqual([`${METRIC}{host="a"} p95`]);
});

test("a rule compares a percentile, also when it is made from the chart", async ({
  page,
  startDaemon,
}) => {
  const expression = `histogram_quantile(0.99, sum(increase(${METRIC}[1h])))`;
  const rules = ["0.3", "60"].map((seconds) => [
    `  - alert: SlowerThan${seconds.replace(".", "_")}`,
    `    expr: ${expression} > ${seconds}`,
  ]);
  const head = ["groups:", "- name: latency", "  interval: 1s", "  rules:"];
  const file = { "rules.yml": [...head, ...rules.flat(), ""].join("\n") };
  const daemon = await startWithLatencies(() => startDaemon(file));
  const states = async () => {
    const answer = (await daemon.request("/api/v1/rules")) as {
      data: { groups: { rules: { name: string; state: string }[] }[] };
    };
    return answer.data.groups[0]?.rules.map(({ name, state }) => `${name} ${state}`);
  };
  await expect.poll(states).toEqual(["SlowerThan0_3 firing", "SlowerThan60 inactive"]);

  await page.goto(daemon.url + EXPLORE);
  await drawnChart(page, METRIC);
  await chooseFromMenu(page, METRIC, "Alert rule…");
  const dialog = page.getByRole("dialog", { name: "Alert rule" });
  await expect(dialog.getByLabel("Expression")).toHaveValue(
    `histogram_quantile(0.99, increase(${METRIC}[5m]))`,
  );
  await dialog.getByLabel("Threshold").fill("250ms");
  await expect(dialog.getByLabel("Rule file")).toContainText("> 0.25");
  await expect(dialog.getByRole("status")).toContainText("Valid.");
});

const panel = (title: string, kind: string, x: number, y: number, more: object = {}) => ({
  ...{ id: title.replace(/\W/g, ""), kind, x, y, w: 6, h: 8, title },
  queries: [{ kind: "metric", metric: METRIC, tags: "" }],
  ...more,
});

test("dashboards have percentiles, heat maps, and the share of fast requests", async ({
  page,
  startDaemon,
}) => {
  const daemon = await startWithLatencies(startDaemon);
  const expression = `histogram_fraction(-Inf, 0.3, sum(increase(${METRIC}[1h])))`;
  const panels = [
    panel("Percentiles", "chart", 0, 0),
    panel("Heat", "heatmap", 6, 0),
    panel("p99 now", "stat", 0, 8, { display: "p99" }),
    panel("Under 300 ms", "stat", 6, 8, {
      queries: [{ kind: "promql", expression }],
      unit: "ratio",
      thresholds: [{ level: "bad" }, { from: 0.99, level: "good" }],
    }),
  ];
  const dashboard = { schema: 1, title: "Own", variables: [], panels, range: "2h" };
  await daemon.post("/api/v1/dashboards/own", { version: null, dashboard }, "PUT");
  await openSettled(page, `${daemon.url}/dashboards/own?resolution=1m`);
  for (const title of ["Percentiles", "Heat"]) {
    const { series } = await drawnChart(page, title);
    expect(Object.keys(series).map((key) => key.split(" ").at(-1))).toEqual(PERCENTILES);
  }
  await chartOf(page, "Heat").getByRole("button", { name: "More" }).click();
  await expect(page.getByRole("menuitemcheckbox", { name: "Heat map" })).toBeChecked();
  await page.keyboard.press("Escape");

  const answer = await daemon.request(
    `/api/v1/query?query=${encodeURIComponent(expression)}&time=${NOW / 1000}`,
  );
  const [{ value }] = (answer as { data: { result: [{ value: [number, string] }] } }).data.result;
  const observed = Array.from({ length: 60 }, (_, k) => latencies(NOW - HOUR + k * MINUTE)).flat();
  const fast = observed.filter((latency) => latency <= 0.3).length / observed.length;
  expect(Number(value[1])).toBeCloseTo(fast, 2);
  await expect(page.locator('[data-values="Under 300 ms"]')).toContainText(/9\d(\.\d+)? %/);
  await expect(page.locator('[data-values="p99 now"]')).toContainText(/\d ms|\d s/);
});
