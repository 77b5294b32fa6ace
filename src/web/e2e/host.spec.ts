/** The head of a host's view. */
import { expect, test } from "./support/test";

test("a host without pings differs from a failed request", async ({ page, watch }) => {
  watch.permit(/Failed to load resource/);
  await page.goto("/hosts/unheard");
  const noPings = page.getByText("No agent pings for this host");
  await expect(noPings).toBeVisible();
  await page.route("**/api/v1/hosts?*", (route) =>
    route.fulfill({
      status: 500,
      contentType: "application/json",
      body: JSON.stringify({ error: "failed", message: "a file could not be read" }),
    }),
  );
  await page.reload();
  await expect(page.getByText("unavailable: a file could not be read")).toBeVisible();
  await expect(noPings).toBeHidden();
});
