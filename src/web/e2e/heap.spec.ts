/** The memory of an open page does not grow with time. */
import type { Page } from "@playwright/test";
import { hostSamples, NOW, ping } from "./support/data";
import { countRequests, heapOf, passRefreshes } from "./support/heap";
import { openSettled } from "./support/settled";
import { expect, test } from "./support/test";
import { VIEWS } from "./support/views";
import { MINUTE } from "./support/zones";

/** Refreshes in the first minute, and after it; an hour has 354 after it. */
const FIRST_REFRESHES = 6;
const LATER_REFRESHES = Number(process.env["GRANARY_HEAP_REFRESHES"] ?? 54);
/** The allowed heap size at the end, relative to the size after the first minute. */
const GROWTH_MAX = 1.5;
const DEADLINE_MS = 60_000 + LATER_REFRESHES * 2000;

async function expectNoGrowth(page: Page): Promise<void> {
  await passRefreshes(page, FIRST_REFRESHES);
  const firstBytes = await heapOf(page);
  await passRefreshes(page, LATER_REFRESHES);
  const laterBytes = await heapOf(page);
  const heapText =
    `${firstBytes} bytes after a minute, ` +
    `${laterBytes} after ${LATER_REFRESHES} more refreshes`;
  test.info().annotations.push({ type: "heap", description: heapText });
  expect(laterBytes / firstBytes, heapText).toBeLessThan(GROWTH_MAX);
}

for (const { name, path } of VIEWS) {
  test(`the ${name} view does not use more memory the longer it is open`, async ({ page }) => {
    test.setTimeout(DEADLINE_MS);
    await page.clock.install();
    await countRequests(page);
    await openSettled(page, path);
    await expectNoGrowth(page);
  });
}

test("a fleet of 5,000 hosts does not use more memory the longer it is open", async ({
  page,
  startDaemon,
}) => {
  test.setTimeout(DEADLINE_MS);
  const daemon = await startDaemon();
  for (let k = 0; k < 20; k++) await daemon.postSamples(hostSamples(`node-10${k + 10}`, 0.2, k));
  await daemon.postPings(
    Array.from({ length: 5000 }, (_, k) => ping(`node-${k}`, { booted: NOW - (k + 1) * MINUTE })),
  );
  await page.clock.install();
  await countRequests(page);
  await openSettled(page, daemon.url);
  await page.getByRole("searchbox", { name: "Search hosts" }).fill("node-10");
  await expectNoGrowth(page);
});
