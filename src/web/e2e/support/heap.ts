/** The memory of a page whose clock is driven, so that an hour of refreshes takes less than a minute. */
import type { Page } from "@playwright/test";

/** How often charts and lists ask again. */
const REFRESH_MS = 10_000;

/** The view is asked again so many times, as it would be by itself. */
export async function refreshed(page: Page, times: number): Promise<void> {
  for (let k = 0; k < times; k++) {
    await page.clock.fastForward(REFRESH_MS);
    await page.waitForFunction(() => window.requestsUnderWay === 0);
  }
}

/** Counts what is asked and not answered yet, in the pages that are opened. */
export async function countRequests(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const ask = window.fetch.bind(window);
    window.requestsUnderWay = 0;
    const count = async <T>(answer: Promise<T>) => {
      window.requestsUnderWay += 1;
      // What waits for the answer goes on first: its text is read, or it is drawn.
      return answer.finally(() => setTimeout(() => (window.requestsUnderWay -= 1)));
    };
    window.fetch = async (...words) => {
      const answer = await count(ask(...words));
      const text = answer.text.bind(answer);
      answer.text = () => count(text());
      return answer;
    };
  });
}

/** Bytes in use once all garbage is collected. */
export async function heapOf(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  // What the first collection leaves of weak references goes with the second.
  for (let k = 0; k < 2; k++) await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  return usedSize;
}
