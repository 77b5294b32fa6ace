/** Times measured by the page itself, at the frame that shows the awaited state. */
import type { Browser, BrowserContext, CDPSession, Page } from "@playwright/test";

declare global {
  interface Window {
    /** Milliseconds from the start of the navigation to the first frame with the awaited state. */
    shownAt?: number;
  }
}

export const RUNS = 15;

export function quantile(numbers: readonly number[], part: number): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.min(Math.floor(part * sorted.length), sorted.length - 1)] ?? NaN;
}

/** Returns "median (least to greatest)", in milliseconds. */
export function summary(times: readonly number[]): string {
  const [middle, least, most] = [0.5, 0, 1].map((part) => quantile(times, part).toFixed(0));
  return `${middle ?? ""} ms (${least ?? ""} to ${most ?? ""})`;
}

export interface OpeningTimes {
  times: number[];
  /** Bytes over the wire of the first load, with an empty cache. */
  bytes: number;
  requests: number;
}

interface OpeningOptions {
  runs?: number;
  /** The cookies of each context. */
  cookies?: Parameters<BrowserContext["addCookies"]>[0];
}

/**
 * Opens an address repeatedly, each time in a new context with an empty cache, until `isThere`
 * holds in a frame; the first time does not count.
 */
export async function measureOpening(
  browser: Browser,
  url: string,
  isThere: () => boolean,
  { runs = RUNS, cookies = [] }: OpeningOptions = {},
): Promise<OpeningTimes> {
  const result: OpeningTimes = { times: [], bytes: 0, requests: 0 };
  for (let run = 0; run <= runs; run++) {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    await context.addCookies(cookies);
    const page = await context.newPage();
    const session = await context.newCDPSession(page);
    const weight = await countFileBytes(session);
    await page.addInitScript(`{
      const isThere = ${isThere.toString()};
      const look = () => {
        if (isThere()) window.shownAt = performance.now();
        else requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    }`);
    await page.goto(url, { waitUntil: "commit" });
    await page.waitForFunction(() => window.shownAt !== undefined, undefined, { polling: 50 });
    if (run > 0) result.times.push(await page.evaluate(() => window.shownAt ?? NaN));
    await page.waitForLoadState("networkidle");
    result.bytes = weight.bytes;
    result.requests = weight.requests;
    await context.close();
  }
  return result;
}

/** Counts the static files that are sent: the document, scripts, styles and images; not answers. */
async function countFileBytes(session: CDPSession): Promise<{ bytes: number; requests: number }> {
  const weight = { bytes: 0, requests: 0 };
  const files = new Set<string>();
  await session.send("Network.enable");
  session.on("Network.responseReceived", ({ requestId, type }) => {
    if (!["XHR", "Fetch", "EventSource"].includes(type)) files.add(requestId);
  });
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    if (!files.has(requestId)) return;
    weight.bytes += encodedDataLength;
    weight.requests += 1;
  });
  return weight;
}

export interface Frames {
  /** Milliseconds between one frame and the next. */
  between: number[];
  /** Milliseconds of the main thread's work for each frame. */
  work: number[];
}

interface TraceEvent {
  name: string;
  ph: string;
  ts: number;
  dur?: number;
  tid: number;
  pid: number;
  args: { name?: string };
}

/** Traces the browser while an action runs. */
export async function traceFrames(page: Page, act: () => Promise<void>): Promise<Frames> {
  const session = await page.context().newCDPSession(page);
  const events: TraceEvent[] = [];
  session.on("Tracing.dataCollected", ({ value }) => {
    events.push(...(value as unknown as TraceEvent[]));
  });
  await page.evaluate(() => {
    const frames: number[] = [];
    Object.assign(window, { frames });
    const tick = (frameTimes: number) => {
      frames.push(frameTimes);
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
  const categories = [
    "toplevel",
    "devtools.timeline",
    "devtools.timeline.frame",
    "disabled-by-default-devtools.timeline",
    "__metadata",
  ];
  await session.send("Tracing.start", {
    transferMode: "ReportEvents",
    traceConfig: { includedCategories: categories },
  });
  await act();
  const complete = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
  await session.send("Tracing.end");
  await complete;
  const at = await page.evaluate(() => (window as unknown as { frames: number[] }).frames);
  return { between: at.slice(1).map((time, k) => time - (at[k] ?? time)), work: frameWork(events) };
}

/** Returns the duration of the main thread's tasks between each frame's start and the next. */
function frameWork(events: TraceEvent[]): number[] {
  const mainThreads = new Set(
    events
      .filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain")
      .map(({ pid, tid }) => `${pid} ${tid}`),
  );
  const mainEvents = events.filter(({ pid, tid }) => mainThreads.has(`${pid} ${tid}`));
  const frameStarts = mainEvents
    .filter(({ name }) => name === "FireAnimationFrame")
    .map(({ ts }) => ts)
    .sort((a, b) => a - b);
  const isTask = ({ name, ph }: TraceEvent) => ph === "X" && /RunTask$/.test(name);
  const tasks = mainEvents.filter(isTask);
  const work = new Array<number>(Math.max(frameStarts.length - 1, 0)).fill(0);
  for (const { ts, dur = 0 } of tasks) {
    const frame = frameStarts.findLastIndex((start) => start <= ts + dur);
    if (frame >= 0 && frame < work.length) work[frame] = (work[frame] ?? 0) + dur / 1000;
  }
  return work;
}
