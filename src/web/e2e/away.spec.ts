/** A daemon that dies while the page is open, and comes back. */
import { expect, test } from "./support/test";

test("a killed daemon is missed within two seconds of the next request; the page goes on by itself", async ({
  page,
  startDaemon,
  watch,
}) => {
  watch.excuse(/ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/);
  const daemon = await startDaemon();
  await page.goto(daemon.url);
  await page.evaluate(() => (window.kept = true));
  const away = page.getByRole("alert").filter({ hasText: "The daemon does not answer" });
  await expect(away).toBeHidden();

  await daemon.kill();
  await page.waitForEvent("requestfailed");
  await expect(away).toBeVisible({ timeout: 2000 });

  await daemon.run();
  await expect(away).toBeHidden();
  expect(await page.evaluate(() => window.kept)).toBe(true);
});
