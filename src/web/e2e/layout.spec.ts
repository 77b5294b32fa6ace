/** Text that is cut off or overlaps other text, on every view at both sizes. */
import { chartOf } from "./support/charts";
import { HOST, hostSamples, NOW } from "./support/data";
import { expect, test } from "./support/test";
import { openSettled } from "./support/settled";
import { textProblems } from "./support/texts";
import { SIZES, VIEWS } from "./support/views";
import { DAY } from "./support/zones";

for (const view of VIEWS) {
  for (const size of SIZES) {
    test(`no text overlaps other text on the ${view.name} view at ${size.width}`, async ({
      page,
    }) => {
      await page.setViewportSize(size);
      await openSettled(page, view.path);
      const problems = await page.evaluate(textProblems);
      expect(problems).toEqual([]);
    });
  }
}

test("lists, menus and times fit a small screen", async ({ page, startDaemon }) => {
  const daemon = await startDaemon();
  await daemon.postSamples(hostSamples(HOST, 1, 0));
  await daemon.post("/api/v2/silences", {
    matchers: [{ name: "host", value: HOST, isRegex: false, isEqual: true }],
    startsAt: new Date(NOW).toISOString(),
    endsAt: new Date(NOW + DAY).toISOString(),
    createdBy: "ann",
    comment: "The disk is replaced",
  });
  await page.setViewportSize({ width: 390, height: 844 });
  await openSettled(page, `${daemon.url}/alerts?show=silences`);
  await expect(page.getByText("The disk is replaced")).toBeVisible();
  expect(await page.evaluate(textProblems)).toEqual([]);

  await openSettled(page, `${daemon.url}/hosts/${HOST}?resolution=1m&range=1h`);
  await page.getByRole("button", { name: /^Time zone/ }).click();
  await expect(page.getByRole("dialog", { name: "Time zone" })).toBeInViewport({ ratio: 1 });
  expect(await page.evaluate(textProblems)).not.toContain("the page is wider than the screen");
  await page.keyboard.press("Escape");

  // The menu of a chart near the lower edge is above the navigation.
  const chart = chartOf(page, "Memory used");
  const button = chart.getByRole("button", { name: "More", exact: true });
  await button.evaluate((element) => element.scrollIntoView({ block: "end" }));
  await button.click();
  const menu = chart.getByRole("menu");
  const navigation = page.getByRole("navigation", { name: "Views" });
  const ends = async () => {
    const [list, below] = await Promise.all([menu.boundingBox(), navigation.boundingBox()]);
    return (below?.y ?? 0) - (list?.y ?? 0) - (list?.height ?? Infinity);
  };
  await expect.poll(ends).toBeGreaterThanOrEqual(0);
});
