/** Opens a view and waits until it has loaded. */
import { expect, type Page } from "@playwright/test";

/** Elements that are visible during loading. */
const LOADING = ".spinner, .skeleton, .chart-bar";

export async function openSettled(page: Page, path: string): Promise<void> {
  await page.goto(path);
  await expect(page.locator("main").locator("h1, h2").first()).toBeVisible();
  // Content far below the viewport is not loaded until it is near.
  const isLoading = () =>
    page.evaluate((loading) => {
      const boxes = [...document.querySelectorAll(loading)].map((element) =>
        element.getBoundingClientRect(),
      );
      return boxes.some(({ top, bottom, width }) => width > 0 && top < innerHeight && bottom > 0);
    }, LOADING);
  // Many charts at once, on a busy machine, need time.
  await expect.poll(isLoading, { timeout: 30_000, intervals: [100] }).toBe(false);
}
