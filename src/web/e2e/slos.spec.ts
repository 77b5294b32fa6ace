/** Service level objectives: the list with error budgets, and the charts and alerts of one. */
import type { PromqlAnswer, PromqlVector } from "../src/api/types";
import type { Daemon, Sample } from "./support/daemon";
import { currentMinute } from "./support/data";
import { drawnChart } from "./support/drawn";
import { eventually } from "./support/eventually";
import { expect, test } from "./support/test";
import { DAY, HOUR, MINUTE } from "./support/zones";

const RULES = `slos:
- name: checkout
  target: 99
  interval: 1s
  good: sum(increase(ok_total[$window]))
  total: sum(increase(all_total[$window]))
- name: search
  target: 50
  window: 90d
  interval: 1s
  good: sum(increase(ok_total[$window]))
  total: sum(increase(all_total[$window]))
- name: idle
  target: 99.9
  interval: 1s
  bad: sum(increase(never_total[$window]))
  total: sum(increase(none_total[$window]))
`;
const MINUTES = 180;
const BAD_MINUTES = 20;

/** 100 requests a minute; in the last 20 minutes, none is good: one ninth of all is bad. */
function samples(): Sample[] {
  const now = currentMinute();
  return Array.from({ length: MINUTES }, (_, k) => {
    const time = now - (k + 1) * MINUTE;
    const delta = { tags: {}, kind: "delta" as const, time };
    return [
      { ...delta, metric: "all_total", value: 100 },
      { ...delta, metric: "ok_total", value: k < BAD_MINUTES ? 0 : 100 },
    ];
  }).flat();
}

/** The values that the rules would have recorded in the ten days before: the budget shrinks. */
const HOURS = 240;
function earlier(): Sample[] {
  const hour = Math.floor(Date.now() / HOUR) * HOUR;
  return Array.from({ length: HOURS }, (_, k) => {
    const time = hour - (k + 4) * HOUR;
    const recorded = (metric: string, window: string, value: number): Sample => {
      return { metric, tags: { slo: "checkout", window }, time, value };
    };
    return [
      recorded("slo:budget_left", "30d", k / HOURS),
      recorded("slo:burn_rate", "1h", 2),
      recorded("slo:burn_rate", "5m", 50),
    ];
  }).flat();
}

/** The burn rates of checkout and search in eight windows each, once the worst alert fires. */
const BURNING = encodeURIComponent(
  "count(slo:burn_rate) == 16 and on () " +
    'ALERTS{alertname="ErrorBudgetBurn", severity="critical", alertstate="firing"}',
);

async function startBurning(start: (files: { "rules.yml": string }) => Promise<Daemon>) {
  const daemon = await start({ "rules.yml": RULES });
  await daemon.postSamples([...earlier(), ...samples()]);
  // An evaluation during the post has values of some windows only.
  await eventually("the budget burns", async () => {
    const answer = await daemon.request(`/api/v1/query?query=${BURNING}`);
    return (answer as PromqlAnswer<PromqlVector>).data?.result.length === 1;
  });
  return daemon;
}

test("SLOs are listed with their budgets, the least first", async ({ page, startDaemon }) => {
  const daemon = await startBurning(startDaemon);
  await page.goto(`${daemon.url}/alerts`);
  await page.getByRole("button", { name: /^SLOs/ }).click();
  const table = page.getByRole("region", { name: "Service level objectives" });
  await expect(table.getByRole("rowheader")).toHaveText(["checkout", "search", "idle"]);
  const row = (name: string) => table.getByRole("row").filter({ hasText: name });
  await expect(row("checkout")).toContainText("Burning: critical");
  // 1 / 9 of all requests is bad, and 1 / 100 may be.
  await expect(row("checkout")).toContainText("1,011 % overspent");
  await expect(row("checkout")).toContainText("88.888 %");
  await expect(row("checkout")).toContainText("99 % in 30d");
  // 1 / 9 is bad, and half of them may be.
  await expect(row("search")).toContainText("77 % left");
  await expect(row("search")).toContainText("50 % in 90d");
  await expect(row("search")).toContainText("Within budget");
  await expect(row("idle")).toContainText("No events");
});

test("an SLO shows its budget over the window, burn rates and alerts", async ({
  page,
  startDaemon,
}) => {
  const daemon = await startBurning(startDaemon);
  await page.goto(`${daemon.url}/alerts?show=slos`);
  await page.getByRole("link", { name: "checkout" }).click();
  await expect(page).toHaveURL(/slo=checkout/);
  const budget = await drawnChart(page, "Error budget left");
  const lefts = Object.values(budget.series)[0]?.filter((left) => left !== null) ?? [];
  expect(lefts.length).toBeGreaterThanOrEqual(HOURS - 1);
  expect(lefts.slice(1, HOURS - 1)).toEqual(lefts.slice(1, HOURS - 1).sort((a, b) => b - a));
  expect(lefts[0]).toBeCloseTo((100 * (HOURS - 1)) / HOURS, 6);
  const [first = 0, last = 0] = [budget.times[0], budget.times.at(-1)];
  expect((last - first) / DAY).toBeGreaterThan(29);
  // Of each alert, the long window is drawn.
  const { series } = await drawnChart(page, "Burn rate");
  expect(Object.keys(series).filter((key) => key.includes("5m"))).toEqual([]);
  const burns = page.getByRole("region", { name: "Burn rates" });
  await expect(burns.getByRole("columnheader").nth(1)).toHaveText(
    "critical: over 14.4 in 1h and 5m",
  );
  // All requests of the last 5 minutes are bad: a hundred times as many as may be.
  await expect(burns.getByRole("cell").nth(1)).toContainText("and 100");
  const alert = page.locator(".alert-row").filter({ hasText: "critical" });
  await expect(alert).toContainText("checkout spends its error budget of 30d");
  await page.getByRole("link", { name: "All SLOs" }).click();
  await expect(page.getByRole("rowheader")).toHaveCount(3);
  await page.goto(`${daemon.url}/alerts?show=slos&slo=none`);
  await expect(page.getByRole("alert")).toHaveText("There is no SLO none.");
});
