/** Every control of a chart, and of the time frame that charts share. */
import type { Page } from "@playwright/test";
import { HOST } from "./support/data";
import {
  areaOf,
  boxOf,
  chartOf,
  choices,
  choose,
  chooseZone,
  drag,
  fromMenu,
  legendRow,
  nextFrame,
} from "./support/charts";
import { drawn, drawnNow } from "./support/drawn";
import { expect, test } from "./support/test";
import { DAY, HOUR, MINUTE } from "./support/zones";

const SIX_HOURS = `/hosts/${HOST}?resolution=1m&range=6h`;

/** The stretch of time over which a chart has slots. */
async function stretch(page: Page): Promise<{ start: number; end: number }> {
  const { times } = await drawnNow(page, "Load");
  return { start: times[0] ?? 0, end: times.at(-1) ?? 0 };
}

/** Charts ask again by themselves each ten seconds. */
const REFRESHED = { timeout: 25_000 };

/** What the page asks next for a chart of this metric, in these slots. */
function nextAsked(page: Page, metric = "system_load_1m", resolution = "1m") {
  return page
    .waitForResponse((answer) => {
      const { pathname, searchParams: params } = new URL(answer.url());
      const isOfMetric = params.get("metric") === metric;
      return pathname === "/api/v1/chart" && isOfMetric && params.get("resolution") === resolution;
    }, REFRESHED)
    .then((answer) => {
      const params = new URL(answer.url()).searchParams;
      const number = (name: string) => Number(params.get(name));
      return { params, length: number("end") - number("start") };
    });
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

test("each resolution has its ranges, and each range asks for that stretch of it", async ({
  page,
}) => {
  await page.goto(`/hosts/${HOST}?resolution=1h&range=1w`);
  await drawn(page, "Load");
  for (const [resolution, { api, slot, ranges }] of Object.entries(RANGES)) {
    const first = nextAsked(page, "system_load_1m", api);
    await choose(page, "Resolution", resolution);
    await first;
    const labels = Object.keys(ranges);
    await expect(choices(page, "Range").getByRole("button")).toHaveText(labels);
    for (const label of labels) {
      const button = choices(page, "Range").getByRole("button", { name: label, exact: true });
      // What is chosen already asks for nothing new.
      if ((await button.getAttribute("aria-pressed")) === "true") continue;
      const asked = nextAsked(page, "system_load_1m", api);
      await choose(page, "Range", label);
      const { length } = await asked;
      const tolerance = label.includes("mo") || label.includes("yr") ? 0.05 * length + DAY : slot;
      expect(Math.abs(length - (ranges[label] ?? 0)), label).toBeLessThanOrEqual(tolerance);
    }
  }
});

test("totals and averages per second are those of the API", async ({ page, daemon }) => {
  await page.goto(SIX_HOURS);
  await chartOf(page, "Network received").scrollIntoViewIfNeeded();
  const numbers = async (display: string) => {
    const { times, series } = await drawn(page, "Network received");
    const answer = await daemon.chart({
      metric: "system_network_bytes_in",
      tags: `host=${HOST}`,
      resolution: "1m",
      start: String(times[0]),
      end: String((times.at(-1) ?? 0) + 1),
      display,
    });
    const [drawnNumbers] = Object.values(series);
    return { drawn: drawnNumbers, answered: answer.series[0]?.points.map(([, value]) => value) };
  };
  for (const [choice, display] of [
    ["total", "total"],
    ["avg/sec", "avg_per_sec"],
  ] as const) {
    const asked = nextAsked(page, "system_network_bytes_in");
    await choose(page, "Display", choice);
    await asked;
    await expect(page).toHaveURL(new RegExp(`display=${display}`));
    await expect
      .poll(async () => {
        const { drawn, answered } = await numbers(display);
        return JSON.stringify(drawn) === JSON.stringify(answered);
      })
      .toBe(true);
  }
});

test("a drag zooms to its stretch, a double click goes back", async ({ page }) => {
  await page.goto(SIX_HOURS);
  await drawn(page, "Load");
  const before = await stretch(page);
  const address = page.url();
  const at = (part: number) => before.start + part * (before.end + MINUTE - before.start);
  const asked = nextAsked(page);
  await drag(page, "Load", 0.5, 0.75);
  await asked;
  await expect.poll(async () => (await stretch(page)).end).toBeLessThan(before.end);
  const zoomed = await stretch(page);
  expect(Math.abs(zoomed.start - at(0.5))).toBeLessThan(2 * MINUTE);
  expect(Math.abs(zoomed.end - at(0.75))).toBeLessThan(2 * MINUTE);
  await expect(page).toHaveURL(/start=\d+.*end=\d+/);

  const { at: x, middle } = await boxOf(areaOf(page, "Load"));
  await page.mouse.dblclick(x(0.5), middle);
  await expect(page).toHaveURL(address);
  await expect.poll(async () => (await stretch(page)).end).toBeGreaterThanOrEqual(before.end);
});

test("a stretch is moved by a drag with shift and by the buttons, and left again", async ({
  page,
}) => {
  await page.goto(SIX_HOURS);
  await drawn(page, "Load");
  const before = await stretch(page);
  await page.keyboard.down("Shift");
  await drag(page, "Load", 0.25, 0.75);
  await page.keyboard.up("Shift");
  await expect.poll(async () => (await stretch(page)).start).toBeLessThan(before.start);
  const moved = await stretch(page);
  expect(Math.abs(before.start - moved.start - 3 * HOUR)).toBeLessThan(5 * MINUTE);
  expect(moved.end - moved.start).toBe(before.end - before.start);

  const press = (name: string) => page.getByRole("button", { name, exact: true }).click();
  const startComes = (part: number, from: number) =>
    expect
      .poll(async () => Math.abs((await stretch(page)).start - from - part * 6 * HOUR))
      .toBeLessThan(5 * MINUTE);
  await press("Later");
  await startComes(0.5, moved.start);
  await press("Earlier");
  await startComes(0, moved.start);
  await press("Zoom in");
  await startComes(0.25, moved.start);
  await press("Back");
  await startComes(0, moved.start);
  await press("Zoom out");
  await startComes(-0.5, moved.start);
  await press("Now");
  await expect(page).not.toHaveURL(/start=/);
});

test("all charts show the time that is pointed at, and their values there", async ({ page }) => {
  await page.goto(SIX_HOURS);
  for (const title of ["Load", "CPU"]) await drawn(page, title);
  const { at, middle } = await boxOf(areaOf(page, "Load"));
  await page.mouse.move(at(0.6), middle);
  await nextFrame(page);
  const said = await page.locator(".chart-time").allTextContents();
  const full = said.filter((text) => text !== "" && !text.startsWith("last"));
  expect(full.length).toBeGreaterThan(1);
  expect(new Set(full).size).toBe(1);

  const { times, series } = await drawnNow(page, "Load");
  const clock = /(\d\d):(\d\d)/.exec(full[0] ?? "") ?? [];
  const place = times.findIndex((time) => {
    const local = new Date(time).toLocaleTimeString("en-GB", { timeZone: "Europe/Berlin" });
    return local.startsWith(`${clock[1] ?? ""}:${clock[2] ?? ""}`);
  });
  const value = series[`system_load_5m{host="${HOST}"} avg`]?.[place];
  const shown = await legendRow(page, "Load", "5m").locator(".legend-value").textContent();
  expect(Number.parseFloat(shown ?? "")).toBeCloseTo(value ?? NaN, 2);
  await page.mouse.move(2, 2);
  await nextFrame(page);
  await expect(chartOf(page, "Load").locator(".chart-time")).toContainText("last");
});

test("a click shows one series alone, a click with shift hides it", async ({ page }) => {
  await page.goto(SIX_HOURS);
  await drawn(page, "Load");
  const button = (label: string) => legendRow(page, "Load", label).getByRole("button");
  const labels = ["1m", "5m", "15m"] as const;
  const shown = async () => {
    const states = labels.map((label) => button(label).getAttribute("aria-pressed"));
    return (await Promise.all(states)).map((state) => state === "true");
  };
  await button(labels[1]).click();
  await expect.poll(shown).toEqual([false, true, false]);
  await page.reload();
  await drawn(page, "Load");
  await expect.poll(shown).toEqual([false, true, false]);
  await button(labels[1]).click();
  await expect.poll(shown).toEqual([true, true, true]);
  await button(labels[2]).click({ modifiers: ["Shift"] });
  await expect.poll(shown).toEqual([true, true, false]);
});

test("axes are logarithmic and areas stacked where one wants them so", async ({ page }) => {
  await page.goto(SIX_HOURS);
  await drawn(page, "Load");
  const plain = (await drawnNow(page, "Load")).series;
  await fromMenu(page, "Load", "Stacked areas");
  await expect(page).toHaveURL(/stacked\.load=1/);
  const keys = Object.keys(plain);
  await expect
    .poll(async () => {
      const { series } = await drawnNow(page, "Load");
      const [under = [], , top = []] = keys.map((key) => series[key]);
      const sums = top.map((_, k) => keys.reduce((sum, key) => sum + (plain[key]?.[k] ?? 0), 0));
      const isSum = (values: (number | null)[]) =>
        values.every((value, k) => value === null || Math.abs(value - (sums[k] ?? 0)) < 1e-9);
      return isSum(top) || isSum(under);
    })
    .toBe(true);
  await fromMenu(page, "Load", "Stacked areas");
  await expect(page).not.toHaveURL(/stacked/);

  const texts = await axisTexts(page, () => fromMenu(page, "Load", "Logarithmic axis"));
  await expect(page).toHaveURL(/log\.load=1/);
  expect(texts).toContain("0.1");
  expect(texts).toContain("10");
});

/** The texts that charts write on their canvases meanwhile. */
async function axisTexts(page: Page, act: () => Promise<void>): Promise<string[]> {
  await page.evaluate(() => {
    const written: string[] = [];
    Object.assign(window, { written });
    const ground = CanvasRenderingContext2D.prototype;
    const write = Object.getOwnPropertyDescriptor(ground, "fillText")
      ?.value as typeof ground.fillText;
    ground.fillText = function (text, ...rest) {
      written.push(text);
      write.call(this, text, ...rest);
    };
  });
  await act();
  await nextFrame(page);
  return page.evaluate(() => (window as unknown as { written: string[] }).written);
}

test("a chart fills the screen and leaves it by Escape", async ({ page }) => {
  await page.goto(SIX_HOURS);
  const before = await boxOf(chartOf(page, "Load"));
  await chartOf(page, "Load").getByRole("button", { name: "Full screen" }).click();
  await expect(page).toHaveURL(/full=load/);
  await expect
    .poll(async () => (await chartOf(page, "Load").boundingBox())?.width ?? 0)
    .toBeGreaterThan(1400);
  await page.keyboard.press("Escape");
  await expect(page).not.toHaveURL(/full=/);
  await expect
    .poll(async () => (await chartOf(page, "Load").boundingBox())?.width)
    .toBe(before.width);
});

test("what is saved as a table is what is drawn", async ({ page }) => {
  await page.goto(SIX_HOURS);
  const { times, series } = await drawn(page, "Load");
  const saved = page.waitForEvent("download");
  await fromMenu(page, "Load", "Save as CSV");
  const file = await saved;
  expect(file.suggestedFilename()).toBe("load.csv");
  const text = await read(file.createReadStream());
  const [head = "", ...rows] = text.toString("utf8").trimEnd().split("\r\n");
  expect(head.startsWith("time,")).toBe(true);
  const fields = rows.map((row) => row.split(","));
  expect(fields.map(([time]) => Date.parse(time ?? ""))).toEqual(times);
  Object.values(series).forEach((values, k) => {
    const column = fields.map((row) => (row[k + 1] === "" ? null : Number(row[k + 1])));
    expect(column).toEqual(values);
  });
  expect(head.match(/system_load_\d+m/g)).toHaveLength(Object.keys(series).length);
});

async function read(stream: Promise<AsyncIterable<Buffer>>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of await stream) parts.push(part);
  return Buffer.concat(parts);
}

test("what is saved as a picture holds the pixels that are drawn", async ({ page }) => {
  await page.goto(SIX_HOURS);
  await drawn(page, "Load");
  const saved = page.waitForEvent("download");
  await fromMenu(page, "Load", "Save as PNG");
  const bytes = await read((await saved).createReadStream());
  const found = await page.evaluate(async (base64) => {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const picture = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const canvas = document.querySelector<HTMLCanvasElement>("[data-chart=Load] .uplot canvas");
    if (!canvas) throw new Error("no canvas");
    const pixels = (source: CanvasImageSource, width: number, height: number) => {
      const ctx = new OffscreenCanvas(width, height).getContext("2d");
      ctx?.drawImage(source, 0, 0);
      return new Uint32Array(ctx?.getImageData(0, 0, width, height).data.buffer ?? []);
    };
    const plot = pixels(canvas, canvas.width, canvas.height);
    const whole = pixels(picture, picture.width, picture.height);
    const [left, top] = [16 * devicePixelRatio, 56 * devicePixelRatio];
    let [opaque, same] = [0, 0];
    plot.forEach((pixel, k) => {
      if (pixel >>> 24 < 255) return;
      opaque += 1;
      const [x, y] = [k % canvas.width, Math.floor(k / canvas.width)];
      if (whole[(y + top) * picture.width + x + left] === pixel) same += 1;
    });
    return { opaque, same, isLarger: picture.height > canvas.height };
  }, bytes.toString("base64"));
  expect(found.opaque).toBeGreaterThan(500);
  expect(found.same).toBe(found.opaque);
  expect(found.isLarger).toBe(true);
});

test("an address shows the same to whoever opens it", async ({ page, context }) => {
  await page.goto(SIX_HOURS);
  await drawn(page, "Load");
  await choose(page, "Display", "total");
  await chooseZone(page, "Australia/Lord_Howe");
  await legendRow(page, "Load", "15m")
    .getByRole("button")
    .click({ modifiers: ["Shift"] });
  await fromMenu(page, "Load", "Logarithmic axis");
  await drag(page, "Load", 0.4, 0.9);
  await expect(page).toHaveURL(/start=/);
  await expect.poll(async () => (await drawnNow(page, "Load")).times.length).toBeLessThan(200);
  const first = await drawn(page, "Load");

  const other = await context.newPage();
  await other.goto(page.url());
  expect(await drawn(other, "Load")).toEqual(first);
  await expect(legendRow(other, "Load", "15m").getByRole("button")).toHaveAttribute(
    "aria-pressed",
    "false",
  );
  await expect(choices(other, "Display").getByRole("button", { name: "total" })).toHaveAttribute(
    "aria-pressed",
    "true",
  );
  await expect(other.getByRole("button", { name: /^Time zone/ })).toHaveText(/Lord Howe/);
  await chartOf(other, "Load").getByRole("button", { name: "More", exact: true }).click();
  await expect(other.getByRole("menuitemcheckbox", { name: "Logarithmic axis" })).toBeChecked();
});

/** What was seen of a chart, frame by frame. */
interface Seen {
  canvas: HTMLCanvasElement;
  card: Element;
  frames: number;
  removed: number;
  empty: number;
  moved: number;
}

test("a refresh moves nothing that the mouse is on, and draws on the same canvas", async ({
  page,
}) => {
  await page.goto(`/hosts/${HOST}?resolution=1m&range=1h`);
  await drawn(page, "Load");
  const { at, middle } = await boxOf(areaOf(page, "Load"));
  await page.mouse.move(at(0.3), middle);
  await nextFrame(page);
  await page.evaluate(() => {
    const card = document.querySelector("[data-chart=Load]");
    const canvas = card?.querySelector<HTMLCanvasElement>(".uplot canvas");
    if (!card || !canvas) throw new Error("no chart");
    const copy = new OffscreenCanvas(canvas.width, canvas.height);
    const ctx = copy.getContext("2d", { willReadFrequently: true });
    const seen: Seen = { canvas, card, frames: 0, removed: 0, empty: 0, moved: 0 };
    Object.assign(window, { seen });
    new MutationObserver((changes) => {
      for (const change of changes) {
        for (const node of change.removedNodes) if (node instanceof Element) seen.removed += 1;
      }
    }).observe(card, { childList: true, subtree: true });
    const line = card.querySelector(".plot-line");
    const place = line?.getBoundingClientRect().left;
    const look = () => {
      seen.frames += 1;
      if (line?.getBoundingClientRect().left !== place) seen.moved += 1;
      // One frame in ten: reading pixels takes time.
      if (seen.frames % 10 === 0 && ctx) {
        ctx.clearRect(0, 0, copy.width, copy.height);
        ctx.drawImage(canvas, 0, 0);
        const { data } = ctx.getImageData(0, copy.height / 2, copy.width, 40);
        if (data.every((part) => part === 0)) seen.empty += 1;
      }
      requestAnimationFrame(look);
    };
    look();
  });
  const said = await chartOf(page, "Load").locator(".chart-time").textContent();
  for (let k = 0; k < 2; k++) await nextAsked(page);
  await nextFrame(page);
  const seen = await page.evaluate(() => {
    const { canvas, card, frames, removed, empty, moved } = (window as unknown as { seen: Seen })
      .seen;
    return { isSame: canvas.isConnected && card.isConnected, frames, removed, empty, moved };
  });
  expect(seen).toMatchObject({ isSame: true, removed: 0, empty: 0, moved: 0 });
  expect(seen.frames).toBeGreaterThan(50);
  expect(await chartOf(page, "Load").locator(".chart-time").textContent()).toBe(said);
});
