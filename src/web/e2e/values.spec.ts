/** The drawn values, compared with the API's answers point by point. */
import type { Page } from "@playwright/test";
import { CLOCKS, GAP, HOST, NOW, ZEROS } from "./support/data";
import type { Daemon } from "./support/daemon";
import { areaOf, chartOf, nextFrame } from "./support/charts";
import { drawnChart, chartOfAnswer, type DrawnChart } from "./support/drawn";
import { expect, test } from "./support/test";
import { DAY, HOUR, lastChange, MINUTE, offset, startOfDay, ZONES } from "./support/zones";

interface ChartRequest {
  metrics: string[];
  host: string;
  /** The number of each slot; the default depends on the kind of the metric. */
  display?: string;
  resolution?: string;
  zone?: string;
}

/** Requests the values of a chart from the API. */
async function requestChart(
  daemon: Daemon,
  chart: DrawnChart,
  request: ChartRequest,
): Promise<DrawnChart> {
  const [start, end] = [chart.times[0] ?? 0, chart.times.at(-1) ?? 0];
  const answers = request.metrics.map(async (metric) => {
    const answer = await daemon.chart({
      metric,
      tags: `host=${request.host}`,
      start: String(start),
      end: String(end + 1),
      resolution: request.resolution ?? "1m",
      ...(request.display ? { display: request.display } : {}),
      ...(request.zone ? { tz: request.zone } : {}),
    });
    return chartOfAnswer(answer);
  });
  const charts = await Promise.all(answers);
  const series = Object.assign({}, ...charts.map(({ series }) => series)) as DrawnChart["series"];
  return { times: charts[0]?.times ?? [], series };
}

test("three charts draw the numbers of the API at every point", async ({ page, daemon }) => {
  await page.goto(`/hosts/${HOST}?resolution=1m&range=6h`);
  const charts: Record<string, string[]> = {
    Load: ["system_load_1m", "system_load_5m", "system_load_15m"],
    "Memory used": ["system_memory_used", "system_memory_available", "system_memory_total"],
    "Network received": ["system_network_bytes_in"],
  };
  for (const [title, metrics] of Object.entries(charts)) {
    await chartOf(page, title).scrollIntoViewIfNeeded();
    const chart = await drawnChart(page, title);
    expect(chart.times).toHaveLength(6 * 60);
    expect(Object.keys(chart.series)).toHaveLength(metrics.length);
    expect(chart, title).toEqual(await requestChart(daemon, chart, { metrics, host: HOST }));
    const numbers = Object.values(chart.series)
      .flat()
      .filter((value) => value !== null);
    expect(numbers.length).toBeGreaterThan(150 * metrics.length);
  }
});

test("an empty slot is drawn as a gap, and zero as zero", async ({ page }) => {
  await page.goto(`/hosts/${HOST}?resolution=1m&range=6h`);
  const { times, series } = await drawnChart(page, "Load");
  const load = Object.entries(series).find(([key]) => key.startsWith("system_load_1m"))?.[1] ?? [];
  const valuesIn = ({ from, to }: { from: number; to: number }) =>
    load.filter((_, k) => (times[k] ?? 0) >= from && (times[k] ?? 0) < to);
  expect(valuesIn(GAP)).toEqual(new Array(20).fill(null));
  expect(valuesIn(ZEROS)).toEqual(new Array(10).fill(0));
});

test("late samples appear automatically", async ({ page, daemon }) => {
  const tags = { host: "late-host" };
  const lateTime = NOW - 20 * MINUTE;
  const sampleAt = (time: number, value: number) => ({
    metric: "system_load_1m",
    tags,
    time,
    value,
  });
  await daemon.postSamples([sampleAt(lateTime - MINUTE, 1), sampleAt(lateTime + MINUTE, 1)]);
  await page.goto("/hosts/late-host?resolution=1m&range=1h");
  const lateValue = async () => {
    const { times, series } = await drawnChart(page, "Load");
    return Object.values(series)[0]?.[times.indexOf(lateTime)];
  };
  expect(await lateValue()).toBeNull();
  await daemon.postSamples([sampleAt(lateTime, 42)]);
  await expect.poll(lateValue, { timeout: 25_000 }).toBe(42);
});

test("the current slot is drawn and hatched", async ({ page, daemon }) => {
  await page.goto("/hosts/real-host?resolution=1m&range=1h");
  const chart = await drawnChart(page, "Load");
  const answer = await daemon.chart({
    metric: "system_load_1m",
    tags: "host=real-host",
    range: "10m",
    resolution: "1m",
  });
  expect(answer.incomplete_from).toBeGreaterThanOrEqual(chart.times.at(-1) ?? Infinity);
  // The hatched background has several colours, the background of an earlier slot a single colour.
  const colours = await areaOf(page, "Load").evaluate((area) => {
    const canvas = area.closest("section")?.querySelector<HTMLCanvasElement>(".uplot canvas");
    if (!canvas) return [];
    const canvasCopy = new OffscreenCanvas(canvas.width, canvas.height);
    const context = canvasCopy.getContext("2d", { willReadFrequently: true });
    if (!context) return [];
    context.drawImage(canvas, 0, 0);
    const [from, to] = [canvas.getBoundingClientRect(), area.getBoundingClientRect()];
    const slotWidth = to.width / 60;
    const coloursOfSlot = (slot: number) => {
      const x = to.left - from.left + slot * slotWidth + 2;
      const { data } = context.getImageData(x, to.top - from.top + 3, slotWidth - 4, 12);
      const coloursSeen = new Set<string>();
      for (let k = 0; k < data.length; k += 4) coloursSeen.add(data.slice(k, k + 4).join());
      return coloursSeen.size;
    };
    return [coloursOfSlot(59), coloursOfSlot(40)];
  });
  expect(colours[0]).toBeGreaterThan(colours[1] ?? Infinity);
});

/** Returns the times that a chart shows while the keyboard moves through its points. */
async function shownTimesByStep(page: Page, title: string, points: number): Promise<string[]> {
  const area = areaOf(page, title);
  await area.focus();
  const shown: string[] = [];
  for (let k = 0; k < points; k++) {
    await page.keyboard.press(k === 0 ? "Home" : "ArrowRight");
    await nextFrame(page);
    shown.push((await chartOf(page, title).locator(".chart-time").textContent()) ?? "");
  }
  return shown;
}

for (const zone of ZONES) {
  test(`days follow the clock of ${zone}, also when it changes`, async ({ page, daemon }) => {
    const change = lastChange(zone, 4);
    const firstDay = startOfDay(zone, change - 2 * DAY);
    const end = startOfDay(zone, change + 3 * DAY);
    const search = new URLSearchParams({
      resolution: "1d",
      start: String(firstDay),
      end: String(end),
      tz: zone,
    });
    await page.goto(`/hosts/${CLOCKS}?${search.toString()}`);
    const chart = await drawnChart(page, "Load");
    const request = { metrics: ["system_load_1m"], host: CLOCKS, resolution: "day", zone };
    expect(chart).toEqual(await requestChart(daemon, chart, request));

    const starts: number[] = [];
    for (let time = firstDay; time < end; time = startOfDay(zone, time + 30 * HOUR))
      starts.push(time);
    expect(chart.times).toEqual(starts);
    const extraTime = offset(zone, change - 1) - offset(zone, change);
    const lengths = starts.map((time, k) => (starts[k + 1] ?? end) - time);
    expect(lengths).toEqual([DAY, DAY, DAY + extraTime, DAY, DAY]);

    const format = new Intl.DateTimeFormat("en-GB", {
      timeZone: zone,
      weekday: "short",
      day: "numeric",
      month: "short",
      year: "numeric",
    });
    const days = starts.map((time) =>
      format.format(time).replaceAll(",", "").replace("Sept", "Sep"),
    );
    expect(await shownTimesByStep(page, "Load", starts.length)).toEqual(days);
  });

  test(`hours are distinct while the clock of ${zone} changes`, async ({ page, daemon }) => {
    const change = lastChange(zone, 4);
    const [start, end] = [
      Math.floor(change / HOUR - 4) * HOUR,
      Math.floor(change / HOUR + 4) * HOUR,
    ];
    const search = new URLSearchParams({
      resolution: "1h",
      start: String(start),
      end: String(end),
      tz: zone,
    });
    await page.goto(`/hosts/${CLOCKS}?${search.toString()}`);
    const chart = await drawnChart(page, "Load");
    const request = { metrics: ["system_load_1m"], host: CLOCKS, resolution: "1h" };
    expect(chart).toEqual(await requestChart(daemon, chart, request));
    const shown = await shownTimesByStep(page, "Load", chart.times.length);
    const clock = (time: number) => {
      const local = new Date(time + offset(zone, time)).toISOString();
      return local.slice(11, 16);
    };
    expect(shown.map((text) => /\d\d:\d\d/.exec(text)?.[0])).toEqual(chart.times.map(clock));
    expect(new Set(shown).size, "each hour has a distinct label").toBe(shown.length);
  });
}
