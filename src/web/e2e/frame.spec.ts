/** The frame around every view. */
import { VIEWS } from "./support/views";
import { expect, test } from "./support/test";

test("each view is opened by its link, which is marked", async ({ page }) => {
  await page.goto("/");
  const navigation = page.getByRole("navigation", { name: "Views" });
  for (const view of VIEWS) {
    if (!view.linkText) continue;
    await navigation.getByRole("link", { name: view.linkText, exact: true }).click();
    await expect(page).toHaveURL(view.path);
    await expect(navigation.locator("[aria-current=page]")).toHaveText(view.linkText);
  }
  await page.goBack();
  await expect(page).toHaveURL("/status");
});

test("an address without a view leads back to the fleet", async ({ page, watch }) => {
  watch.permit(/Failed to load resource/);
  const answer = await page.goto("/nonsense");
  expect(answer?.status()).toBe(404);
  await expect(page.getByText("Page not found")).toBeVisible();
  await page.getByRole("link", { name: "Open fleet" }).click();
  await expect(page.getByRole("heading", { name: "Fleet", level: 1 })).toBeVisible();
});

test("a chosen theme remains after a reload", async ({ page }) => {
  await page.goto("/");
  const theme = page.getByRole("button", { name: /^Theme/ });
  const background = () =>
    page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  const dark = await background();
  await theme.click();
  await expect(page.locator("html")).toHaveAttribute("data-theme", "light");
  expect(await background()).not.toBe(dark);
  await page.reload();
  await expect(page.locator("html")).toHaveAttribute("data-theme", "light");
});

test("the first paint has the system's theme, before any script runs", async ({ page }) => {
  const background = () =>
    page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  await page.goto("/");
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  const dark = await background();
  await page.route("**/*.js", (route) => route.fulfill({ contentType: "text/javascript" }));
  await page.reload();
  await expect(page.locator("html")).not.toHaveAttribute("data-theme", /./);
  expect(await background()).toBe(dark);
  await page.emulateMedia({ colorScheme: "light" });
  await expect.poll(background).not.toBe(dark);
});

test("the first tab stop skips the navigation", async ({ page }) => {
  await page.goto("/status");
  await page.keyboard.press("Tab");
  await expect(page.getByRole("link", { name: "Skip to content" })).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page.locator("main")).toBeFocused();
});
