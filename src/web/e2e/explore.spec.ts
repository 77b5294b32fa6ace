/** Explore: finding metrics and tags, queries, expressions, tables. */
import type { Page } from "@playwright/test";
import { HOST } from "./support/data";
import { drawnChart, currentChart, chartTitles } from "./support/drawn";
import { eventually } from "./support/eventually";
import { expect, test } from "./support/test";

const metric = (page: Page) => page.getByRole("combobox", { name: "Metric of query A" });

/** Returns the keys of the drawn series. A chart in Explore has its query's metric as title. */
async function drawnKeys(page: Page, title: string): Promise<string[]> {
  return Object.keys((await drawnChart(page, title)).series).sort();
}

test("a metric is found by words of its name while the reader types", async ({ page, daemon }) => {
  await page.goto("/explore");
  await metric(page).pressSequentially("load sys", { delay: 20 });
  const answer = (await daemon.request("/api/v1/find?q=load%20sys&limit=50")) as {
    metrics: { metric: string }[];
  };
  const options = page.getByRole("listbox", { name: "metrics" }).getByRole("option");
  await expect(options).toHaveCount(answer.metrics.length);
  await expect(options.first()).toContainText(answer.metrics[0]?.metric ?? "?");
  await page.getByRole("option", { name: /system_load_15m/ }).click();
  await expect(page).toHaveURL(/metric=system_load_15m/);
  expect((await drawnKeys(page, "system_load_15m")).join()).toContain(`host="${HOST}"`);
});

test("tags have the API's counts, and a click filters by a value", async ({ page, daemon }) => {
  await page.goto("/explore?metric=system_load_1m&range=6h");
  const facets = (await daemon.request("/api/v1/facets?metric=system_load_1m")) as {
    tags: { name: string; values: { value: string; series: number }[] }[];
  };
  const tagRegion = page.getByRole("region", { name: "Tags of query A" });
  const hostValues = facets.tags.find(({ name }) => name === "host")?.values ?? [];
  expect(hostValues.length).toBeGreaterThan(3);
  for (const { value, series } of hostValues.slice(0, 5)) {
    const row = tagRegion.locator(".facet-value").filter({ hasText: value });
    await expect(row.first()).toContainText(String(series));
  }
  await tagRegion.locator(".facet-value").filter({ hasText: "web2" }).click();
  await expect(page).toHaveURL(/tags=host%3Dweb2/);
  await expect
    .poll(async () =>
      (await drawnKeys(page, "system_load_1m")).map((key) => key.replace(/ .*/, "")),
    )
    .toEqual(['system_load_1m{host="web2"}']);
});

test("the button for more values of a tag counts all of them", async ({ page, startDaemon }) => {
  const daemon = await startDaemon();
  const samples = Array.from({ length: 62 }, (_, k) => ({
    ...{ metric: "wide", time: Date.now(), value: k },
    tags: { host: `host-${k}` },
  }));
  await daemon.postSamples(samples);
  await page.goto(`${daemon.url}/explore?metric=wide`);
  const tags = page.getByRole("region", { name: "Tags of query A" });
  await tags.getByRole("button", { name: "54 more" }).click();
  const shown = await tags.locator(".facet-value").count();
  expect(shown).toBeLessThan(62);
  await expect(tags).toContainText(`${62 - shown} more: search`);
});

test("series are grouped by a tag and limited to the largest", async ({ page, daemon }) => {
  await page.goto("/explore?metric=system_network_bytes_in&range=6h");
  await drawnChart(page, "system_network_bytes_in");
  await page.getByRole("button", { name: /^Lines/ }).click();
  await page.getByRole("checkbox", { name: "host", exact: true }).check();
  await expect(page).toHaveURL(/group_by=host/);
  await page.getByRole("combobox", { name: "Lines of query A" }).selectOption("top");
  await page.getByRole("spinbutton", { name: "Number of lines of query A" }).fill("1");
  await page.keyboard.press("Tab");
  await expect(page).toHaveURL(/top=1(&|$)/);
  const answer = await daemon.chart({
    metric: "system_network_bytes_in",
    group_by: "host",
    top: "1",
    range: "6h",
    resolution: "1m",
  });
  const largestHost = answer.series[0]?.tags["host"] ?? "?";
  await expect
    .poll(async () => (await drawnKeys(page, "system_network_bytes_in")).join())
    .toMatch(new RegExp(`^system_network_bytes_in\\{host="${largestHost}"\\} [a-z_]+$`));
});

test("PromQL is completed and drawn, and errors are underlined at their place", async ({
  page,
  daemon,
  watch,
}) => {
  watch.permit(/400 \(Bad Request\)/);
  await page.goto("/explore?range=6h");
  await page.getByRole("group", { name: "Kind of query A" }).getByText("PromQL").click();
  const editor = page.getByRole("textbox", { name: "PromQL expression of query A" });
  // The editor replaces a plain field once it is loaded.
  await expect(page.locator(".cm-editor")).toBeVisible();
  await editor.click();
  await page.keyboard.type("max by (host) (system_loa", { delay: 15 });
  const completion = page.locator(".cm-tooltip-autocomplete");
  await expect(completion).toContainText("system_load_1m");
  await page.keyboard.type('d_1m{host=~"web.*"})', { delay: 5 });
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+Enter");
  await expect(page).toHaveURL(/expression=max/);
  await eventually("a chart is drawn", async () => (await chartTitles(page)).length > 0);
  const [name = ""] = await chartTitles(page);
  const { times, series } = await drawnChart(page, name);
  const [start, end] = [times[0] ?? 0, times.at(-1) ?? 0];
  const search = new URLSearchParams({
    query: 'max by (host) (system_load_1m{host=~"web.*"})',
    start: String(start / 1000),
    end: String(end / 1000),
    step: "60",
  });
  const answer = (await daemon.request(`/api/v1/query_range?${search.toString()}`)) as {
    data: { result: { metric: { host: string }; values: [number, string][] }[] };
  };
  expect(Object.keys(series)).toHaveLength(answer.data.result.length);
  for (const { metric, values } of answer.data.result) {
    const [, drawnValues = []] =
      Object.entries(series).find(([key]) => key.includes(`host="${metric.host}"`)) ?? [];
    const expected = new Map(values.map(([seconds, text]) => [seconds * 1000, Number(text)]));
    expect(drawnValues).toEqual(times.map((time) => expected.get(time) ?? null));
  }

  await editor.click();
  await page.keyboard.press("Control+A");
  await page.keyboard.type("system_load_1m +* 2", { delay: 5 });
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+Enter");
  await expect(page.locator(".promql-complaint")).not.toBeEmpty();
  // The underlining begins where the expression becomes invalid.
  await expect(page.locator(".cm-complaint").first()).toHaveText(/^[+*]/);
});

test("the table contains the drawn values", async ({ page }) => {
  await page.goto(`/explore?metric=system_load_5m&tags=host=${HOST}&range=1h&resolution=1m`);
  await drawnChart(page, "system_load_5m");
  await page.getByRole("group", { name: "Table of" }).getByText("Values").click();
  const table = page.getByRole("region", { name: "Values" });
  const rows = table.locator("tbody tr:not(.table-space)");
  await expect(rows.first()).toBeVisible();
  const { times, series } = await currentChart(page, "system_load_5m");
  const [values = []] = Object.values(series);
  const tableRows = await rows.evaluateAll((rows) =>
    rows.map((row) => [...row.querySelectorAll("th, td")].map((cell) => cell.textContent.trim())),
  );
  expect(tableRows.length).toBeGreaterThan(5);
  const clock = new Intl.DateTimeFormat("en-GB", {
    timeZone: "Europe/Berlin",
    hour: "2-digit",
    minute: "2-digit",
  });
  const drawnByTime = new Map(times.map((time, k) => [clock.format(time), values[k] ?? null]));
  for (const [time = "", number = ""] of tableRows) {
    const shownClock = /\d\d:\d\d/.exec(time)?.[0] ?? "";
    const value = drawnByTime.get(shownClock);
    expect(drawnByTime.has(shownClock), time).toBe(true);
    if (value === null) expect(number).toBe("–");
    else expect(Number.parseFloat(number)).toBeCloseTo(value ?? NaN, 2);
  }
});
