/** The time frame that charts share: resolution, range, zone, moves in time, address. */
import type { Page } from "@playwright/test";
import { nextChartRequest } from "./support/asked";
import {
  areaOf,
  boxOf,
  chartOf,
  choiceGroup,
  choiceList,
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
      // A refresh of the previous range may be sent first.
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

for (const width of [1440, 1280]) {
  test(`the controls are one row at ${width} pixels, also of a fixed range`, async ({ page }) => {
    await page.setViewportSize({ width, height: 900 });
    for (const path of [SIX_HOURS, `${SIX_HOURS}&start=1763630000000&end=1763640000000`]) {
      await page.goto(path);
      await expect(choiceList(page, "Display")).toBeVisible();
      const middles = await page.locator(".time-controls > *").evaluateAll((parts) =>
        parts.map((part) => {
          const { top, height } = part.getBoundingClientRect();
          return Math.round((top + height / 2) / 4);
        }),
      );
      expect(new Set(middles).size, path).toBe(1);
    }
  });
}

test("any range can be typed, and an error says what to type", async ({ page }) => {
  await page.goto(SIX_HOURS);
  await drawnChart(page, "Load");
  const open = () => page.getByRole("button", { name: "Time range" }).click();
  const box = page.getByRole("group", { name: "Time range" });
  await open();
  await expect(box).toContainText("Slots of 1 min are kept 2 days.");
  await box.getByLabel("Last").fill("3 parsecs");
  await box.getByRole("button", { name: "Show range" }).click();
  await expect(box.getByRole("alert")).toHaveText("Type a length such as 6h, 14d or 3mo.");
  await box.getByLabel("Last").fill("3h");
  const request = nextChartRequest(page, "system_load_1m", "1m", (length) => length === 3 * HOUR);
  await page.keyboard.press("Enter");
  await request;
  await expect(page).toHaveURL(/range=3h/);
  await expect(choiceGroup(page, "Range").getByRole("button", { name: "3 hr" })).toHaveAttribute(
    "aria-pressed",
    "true",
  );

  await open();
  await box.getByLabel("From").fill("2026-06-01 10:00");
  await box.getByLabel("To").fill("2026-06-01 09:00");
  await box.getByRole("button", { name: "Show times" }).click();
  await expect(box.getByRole("alert")).toHaveText("To must be later than From.");
  await box.getByLabel("To").fill("2026-06-01 12:30");
  await page.keyboard.press("Enter");
  // Berlin is two hours ahead of UTC in summer.
  const [start, end] = ["08:00", "10:30"].map((time) => Date.parse(`2026-06-01T${time}:00Z`));
  await expect(page).toHaveURL(new RegExp(`start=${start}&end=${end}`));
  await expect(page.getByRole("button", { name: "Time range" })).toHaveText(/1 Jun 10:00 – 12:30/);
});

test("an address that cannot be shown as asked says why", async ({ page }) => {
  await page.goto(`/hosts/${HOST}?range=banana`);
  const complaint = page.getByRole("status").filter({ hasText: "is shown" });
  await expect(complaint).toContainText("The range “banana” is not a length such as 6h");
  await choose(page, "Range", "6 hr");
  await expect(complaint).toBeHidden();
  await page.goto(`/hosts/${HOST}?range=14d`);
  await expect(choiceList(page, "Resolution")).toHaveValue("5m");
  await expect(complaint).toBeHidden();
});

test("refreshing is paused, done at once, and chosen", async ({ page }) => {
  await page.clock.install();
  await page.goto(`/explore?metric=system_load_1m&tags=host%3D${HOST}&refresh=off`);
  await drawnChart(page, "system_load_1m");
  await expect(choiceList(page, "Refresh interval")).toHaveValue("off");
  const once = nextChartRequest(page);
  await page.getByRole("button", { name: "Refresh now" }).click();
  await once;
  const chosen = nextChartRequest(page);
  await choose(page, "Refresh interval", "30 s");
  await chosen;
  await expect(page).toHaveURL(/refresh=30s/);
  const repeated = nextChartRequest(page);
  await page.clock.runFor(31_000);
  await repeated;
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
  await expect(choiceList(otherPage, "Display")).toHaveValue("total");
  await expect(otherPage.getByRole("button", { name: /^Time zone/ })).toHaveText(/Lord Howe/);
  await chartOf(otherPage, "Load").getByRole("button", { name: "More", exact: true }).click();
  await expect(otherPage.getByRole("menuitemcheckbox", { name: "Logarithmic axis" })).toBeChecked();
});
