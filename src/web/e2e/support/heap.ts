/**
 * The memory of a page with a simulated clock, so that an hour of refreshes takes less than a
 * minute.
 */
import type { Page } from "@playwright/test";

/** The refresh interval of charts and lists. */
const REFRESH_MS = 10_000;

/** Advances the clock by this many refreshes of the view, and waits for their answers. */
export async function passRefreshes(page: Page, times: number): Promise<void> {
  for (let k = 0; k < times; k++) {
    await page.clock.fastForward(REFRESH_MS);
    await page.waitForFunction(() => window.requestsUnderWay === 0);
  }
}

/** Counts unanswered requests in pages opened from now on. */
export async function countRequests(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const ask = window.fetch.bind(window);
    window.requestsUnderWay = 0;
    const count = async <T>(answer: Promise<T>) => {
      window.requestsUnderWay += 1;
      // Code that awaits the answer runs first: it reads the text, or draws.
      return answer.finally(() => setTimeout(() => (window.requestsUnderWay -= 1)));
    };
    window.fetch = async (...args) => {
      const answer = await count(ask(...args));
      const text = answer.text.bind(answer);
      answer.text = () => count(text());
      return answer;
    };
  });
}

/** Returns the bytes in use once all garbage is collected. */
export async function heapOf(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  // The second collection removes weak references that the first collection left.
  for (let k = 0; k < 2; k++) await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  return usedSize;
}
