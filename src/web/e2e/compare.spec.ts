/** Comparisons: with the time before a release, as a difference, and of two series. */
import type { Page } from "@playwright/test";
import { chartOf, chooseFromMenu } from "./support/charts";
import type { Daemon, Sample } from "./support/daemon";
import { drawnChart } from "./support/drawn";
import { expect, test } from "./support/test";
import { MINUTE } from "./support/zones";

const currentMinute = () => Math.floor(Date.now() / MINUTE) * MINUTE;

/** Posts an hour of values, by the minutes before now. */
async function postHour(
  daemon: Daemon,
  metric: string,
  valueAt: (minutesAgo: number) => number,
): Promise<number> {
  const now = currentMinute();
  const samples = Array.from({ length: 60 }, (_, k): Sample => {
    const tags = { host: "web1" };
    return { metric, tags, time: now - (k + 1) * MINUTE, value: valueAt(k + 1) };
  });
  await daemon.postSamples(samples);
  return now;
}

/** Waits for the values of the line whose key ends so. */
async function valuesOf(page: Page, title: string, end: RegExp): Promise<(number | null)[]> {
  let values: (number | null)[] | undefined;
  await expect
    .poll(async () => {
      const { series } = await drawnChart(page, title);
      [, values] = Object.entries(series).find(([key]) => end.test(key)) ?? [];
      return values !== undefined;
    })
    .toBe(true);
  return values ?? [];
}

const distinct = (values: (number | null)[]) => [...new Set(values.filter((v) => v !== null))];

test("a chart is compared with the time before a release, and shows the difference", async ({
  page,
  startDaemon,
}) => {
  const daemon = await startDaemon();
  const metric = "queue_length";
  const now = await postHour(daemon, metric, (minutesAgo) => (minutesAgo > 20 ? 8 : 10));
  await daemon.post("/api/v1/annotations", { text: "deployed 2.1", time: now - 20 * MINUTE });
  await page.goto(`${daemon.url}/explore?metric=${metric}&range=1h`);
  await drawnChart(page, metric);
  await chooseFromMenu(page, metric, "Compare with before “deployed 2.1”");
  await expect(page).toHaveURL(new RegExp(`compare\\.explore=%40${now - 20 * MINUTE}`));
  const labels = chartOf(page, metric).locator(".legend-label");
  await expect(labels).toHaveText([metric, /^queue_length, before (\d+ \w+ )?\d\d:\d\d$/]);
  const ghost = await valuesOf(page, metric, / @\d+$/);
  // The ghost line begins at the release, and shows the values before it.
  expect(distinct(ghost)).toEqual([8]);
  const count = ghost.filter((value) => value !== null).length;
  expect(count).toBeGreaterThanOrEqual(20);
  expect(count).toBeLessThanOrEqual(22);
  expect(ghost.slice(0, 35).every((value) => value === null)).toBe(true);

  await chooseFromMenu(page, metric, "Difference");
  await expect(page).toHaveURL(/diff\.explore=1/);
  await expect(labels).toHaveText([/^queue_length, minus before (\d+ \w+ )?\d\d:\d\d$/]);
  expect(distinct(await valuesOf(page, metric, / minus @\d+$/))).toEqual([2]);
  // A link shows the same; the menu ends the comparison.
  await page.reload();
  expect(distinct(await valuesOf(page, metric, / minus @\d+$/))).toEqual([2]);
  await chooseFromMenu(page, metric, "Compare with before “deployed 2.1”");
  await expect(page).not.toHaveURL(/compare|diff/);
  await expect(labels).toHaveText([metric]);
});

test("two drawn series are combined, and shown as PromQL", async ({ page, startDaemon }) => {
  const daemon = await startDaemon();
  await postHour(daemon, "memory_used", () => 30);
  await postHour(daemon, "memory_total", () => 120);
  const title = "memory_used, memory_total";
  await page.goto(`${daemon.url}/explore?metric=memory_used&metric.2=memory_total&range=1h`);
  await drawnChart(page, title);
  await page.getByRole("button", { name: "Combine two series" }).click();
  const dialog = page.getByRole("dialog", { name: "Combine two series" });
  const expression = (operator: string) =>
    `(memory_used{host="web1"}) ${operator} on() (memory_total{host="web1"})`;
  await expect(dialog.getByText(expression("/"))).toBeVisible();
  await dialog.getByRole("button", { name: "Difference" }).click();
  await expect(dialog.getByText(expression("-"))).toBeVisible();
  await dialog.getByRole("button", { name: "Ratio" }).click();
  await dialog.getByRole("button", { name: "Add query" }).click();
  await expect(dialog).toBeHidden();
  await expect(page).toHaveURL(/expression\.3=/);
  const combined = `${title}, PromQL`;
  expect(distinct(await valuesOf(page, combined, /on\(\)/))).toEqual([0.25]);
  await expect(chartOf(page, combined).locator(".legend-label")).toContainText(["used ÷ total"]);
  await expect(page.getByRole("textbox", { name: /expression of query C/ })).toContainText(
    expression("/"),
  );
});
