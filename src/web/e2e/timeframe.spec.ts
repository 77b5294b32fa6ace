/** The time frame that charts share: resolution, range, zone, moves in time, address. */
import type { Page } from "@playwright/test";
import { nextChartRequest } from "./support/asked";
import {
  areaOf,
  boxOf,
  chartOf,
  choiceGroup,
  choose,
  chooseZone,
  drag,
  chooseFromMenu,
  legendRow,
} from "./support/charts";
import { HOST } from "./support/data";
import { drawnChart, currentChart } from "./support/drawn";
import { expect, test } from "./support/test";
import { DAY, HOUR, MINUTE } from "./support/zones";

const SIX_HOURS = `/hosts/${HOST}?resolution=1m&range=6h`;

/** Returns the time range of the slots of the chart "Load". */
async function drawnRange(page: Page): Promise<{ start: number; end: number }> {
  const { times } = await currentChart(page, "Load");
  return { start: times[0] ?? 0, end: times.at(-1) ?? 0 };
}

const MONTH = 30.5 * DAY;
const RANGES: Record<string, { api: string; slot: number; ranges: Record<string, number> }> = {
  "1 min": {
    api: "1m",
    slot: MINUTE,
    ranges: { "1 hr": HOUR, "6 hr": 6 * HOUR, "12 hr": 12 * HOUR, "24 hr": DAY, "48 hr": 2 * DAY },
  },
  "5 min": {
    api: "5m",
    slot: 5 * MINUTE,
    ranges: {
      "6 hr": 6 * HOUR,
      "12 hr": 12 * HOUR,
      "24 hr": DAY,
      "48 hr": 2 * DAY,
      "1 wk": 7 * DAY,
      "2 wks": 14 * DAY,
    },
  },
  "1 hr": {
    api: "1h",
    slot: HOUR,
    ranges: { "1 day": DAY, "1 wk": 7 * DAY, "2 wks": 14 * DAY, "1 mo": MONTH, "2 mos": 2 * MONTH },
  },
  "1 day": {
    api: "day",
    slot: DAY,
    ranges: {
      "1 mo": MONTH,
      "2 mos": 2 * MONTH,
      "3 mos": 3 * MONTH,
      "6 mos": 6 * MONTH,
      "1 yr": 12 * MONTH,
      "2 yrs": 24 * MONTH,
      "5 yrs": 60 * MONTH,
    },
  },
};

test("each resolution has its ranges, and each range requests its length", async ({ page }) => {
  await page.goto(`/hosts/${HOST}?resolution=1h&range=1w`);
  await drawnChart(page, "Load");
  for (const [resolution, { api, slot, ranges }] of Object.entries(RANGES)) {
    const first = nextChartRequest(page, "system_load_1m", api);
    await choose(page, "Resolution", resolution);
    await first;
    const labels = Object.keys(ranges);
    await expect(choiceGroup(page, "Range").getByRole("button")).toHaveText(labels);
    for (const label of labels) {
      const button = choiceGroup(page, "Range").getByRole("button", { name: label, exact: true });
      // Choosing the current value sends no request.
      if ((await button.getAttribute("aria-pressed")) === "true") continue;
      const wanted = ranges[label] ?? 0;
      const tolerance = /mo|yr/.test(label) ? 0.05 * wanted + DAY : slot;
      // A refresh of the previous range may be sent before.
      const request = nextChartRequest(page, "system_load_1m", api, (length) => {
        return Math.abs(length - wanted) <= tolerance;
      });
      await choose(page, "Range", label);
      await request;
    }
  }
});

test("a drag zooms to its range, and a double click returns", async ({ page }) => {
  await page.goto(SIX_HOURS);
  await drawnChart(page, "Load");
  const rangeBefore = await drawnRange(page);
  const address = page.url();
  const at = (part: number) =>
    rangeBefore.start + part * (rangeBefore.end + MINUTE - rangeBefore.start);
  const request = nextChartRequest(page);
  await drag(page, "Load", 0.5, 0.75);
  await request;
  await expect.poll(async () => (await drawnRange(page)).end).toBeLessThan(rangeBefore.end);
  const zoomedRange = await drawnRange(page);
  expect(Math.abs(zoomedRange.start - at(0.5))).toBeLessThan(2 * MINUTE);
  expect(Math.abs(zoomedRange.end - at(0.75))).toBeLessThan(2 * MINUTE);
  await expect(page).toHaveURL(/start=\d+.*end=\d+/);

  const { at: xAt, middle } = await boxOf(areaOf(page, "Load"));
  await page.mouse.dblclick(xAt(0.5), middle);
  await expect(page).toHaveURL(`${address}&tz=Europe%2FBerlin`);
  await expect
    .poll(async () => (await drawnRange(page)).end)
    .toBeGreaterThanOrEqual(rangeBefore.end);
});

test("a fixed range is moved by a drag with Shift and by buttons, and left", async ({ page }) => {
  await page.goto(SIX_HOURS);
  await drawnChart(page, "Load");
  const rangeBefore = await drawnRange(page);
  await page.keyboard.down("Shift");
  await drag(page, "Load", 0.25, 0.75);
  await page.keyboard.up("Shift");
  await expect.poll(async () => (await drawnRange(page)).start).toBeLessThan(rangeBefore.start);
  const movedRange = await drawnRange(page);
  expect(Math.abs(rangeBefore.start - movedRange.start - 3 * HOUR)).toBeLessThan(5 * MINUTE);
  expect(movedRange.end - movedRange.start).toBe(rangeBefore.end - rangeBefore.start);

  const clickButton = (name: string) => page.getByRole("button", { name, exact: true }).click();
  const expectStart = (part: number, from: number) =>
    expect
      .poll(async () => Math.abs((await drawnRange(page)).start - from - part * 6 * HOUR))
      .toBeLessThan(5 * MINUTE);
  await clickButton("Later");
  await expectStart(0.5, movedRange.start);
  await clickButton("Earlier");
  await expectStart(0, movedRange.start);
  await clickButton("Zoom in");
  await expectStart(0.25, movedRange.start);
  await clickButton("Back");
  await expectStart(0, movedRange.start);
  await clickButton("Zoom out");
  await expectStart(-0.5, movedRange.start);
  await clickButton("Now");
  await expect(page).not.toHaveURL(/start=/);
});

test("a chosen zone is in the address and shown to every reader", async ({ page, browser }) => {
  await page.goto(SIX_HOURS);
  await chooseZone(page, "Asia/Tokyo");
  await expect(page).toHaveURL(/tz=Asia%2FTokyo/);
  const otherContext = await browser.newContext({ timezoneId: "America/St_Johns" });
  const otherPage = await otherContext.newPage();
  await otherPage.goto(page.url());
  await expect(otherPage.getByRole("button", { name: "Time zone: Asia/Tokyo" })).toBeVisible();
  await otherContext.close();
});

test("all rows of controls are aligned", async ({ page }) => {
  await page.goto(SIX_HOURS);
  await expect(choiceGroup(page, "Display")).toBeVisible();
  const lefts = await page.locator(".time-controls > *").evaluateAll((parts) => {
    const rows = new Map<number, number>();
    for (const part of parts) {
      const { left, top, height } = part.getBoundingClientRect();
      const row = Math.round((top + height / 2) / 10);
      rows.set(row, Math.min(rows.get(row) ?? Infinity, left));
    }
    return [...rows.values()];
  });
  expect(new Set(lefts).size).toBe(1);
});

test("an address shows the same charts to every reader", async ({ page, context }) => {
  await page.goto(SIX_HOURS);
  await drawnChart(page, "Load");
  await choose(page, "Display", "total");
  await chooseZone(page, "Australia/Lord_Howe");
  await legendRow(page, "Load", "15m")
    .getByRole("button")
    .click({ modifiers: ["Shift"] });
  await chooseFromMenu(page, "Load", "Logarithmic axis");
  await drag(page, "Load", 0.4, 0.9);
  await expect(page).toHaveURL(/start=/);
  await expect.poll(async () => (await currentChart(page, "Load")).times.length).toBeLessThan(200);
  const first = await drawnChart(page, "Load");

  const otherPage = await context.newPage();
  await otherPage.goto(page.url());
  expect(await drawnChart(otherPage, "Load")).toEqual(first);
  await expect(legendRow(otherPage, "Load", "15m").getByRole("button")).toHaveAttribute(
    "aria-pressed",
    "false",
  );
  await expect(
    choiceGroup(otherPage, "Display").getByRole("button", { name: "total" }),
  ).toHaveAttribute("aria-pressed", "true");
  await expect(otherPage.getByRole("button", { name: /^Time zone/ })).toHaveText(/Lord Howe/);
  await chartOf(otherPage, "Load").getByRole("button", { name: "More", exact: true }).click();
  await expect(otherPage.getByRole("menuitemcheckbox", { name: "Logarithmic axis" })).toBeChecked();
});
