/** Opens a view and waits until it shows what it has. */
import { expect, type Page } from "@playwright/test";

/** What is seen while something loads. */
const LOADING = ".spinner, .skeleton, .chart-bar";

export async function openSettled(page: Page, path: string): Promise<void> {
  await page.goto(path);
  await expect(page.locator("main").locator("h1, h2").first()).toBeVisible();
  // What is far below is not loaded until one comes near.
  const isLoading = () =>
    page.evaluate((loading) => {
      const boxes = [...document.querySelectorAll(loading)].map((one) =>
        one.getBoundingClientRect(),
      );
      return boxes.some(({ top, bottom, width }) => width > 0 && top < innerHeight && bottom > 0);
    }, LOADING);
  // Many charts at once, on a machine that does other things.
  await expect.poll(isLoading, { timeout: 30_000 }).toBe(false);
}
