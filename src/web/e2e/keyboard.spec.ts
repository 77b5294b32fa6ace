/**
 * The page by keyboard alone: the controls of each view are reached, visibly focused, operated and
 * left.
 */
import { HOST } from "./support/data";
import { areaOf, chartOf, nextFrame } from "./support/charts";
import { drawnChart, currentChart } from "./support/drawn";
import { openSettled } from "./support/settled";
import { expect, test } from "./support/test";
import { VIEWS } from "./support/views";

/** The maximum number of presses of Tab; no view has that many stops. */
const STOPS_MAX = 600;

for (const view of VIEWS) {
  test(`each control of the ${view.name} view is a visible stop of the Tab key`, async ({
    page,
  }) => {
    await openSettled(page, view.path);
    await page.evaluate(() => {
      const seen = new Set<Element>();
      const unseen: string[] = [];
      const focusStyleOf = (element: Element) => {
        const { outlineStyle, outlineColor, outlineWidth, boxShadow } = getComputedStyle(element);
        const outline =
          outlineStyle === "none" ? "none" : outlineStyle + outlineColor + outlineWidth;
        return `${outline} ${boxShadow}`;
      };
      // A shadow that is always present marks no focus.
      const before = new Map<Element, string>();
      for (const element of document.querySelectorAll("*"))
        before.set(element, focusStyleOf(element));
      const isMarked = (element: Element) =>
        focusStyleOf(element) !== (before.get(element) ?? "none none");
      Object.assign(window, { stops: seen, unseen });
      document.addEventListener("focusin", ({ target }) => {
        if (!(target instanceof HTMLElement)) return;
        seen.add(target);
        const container = target.closest("label, .search, .cm-editor, .fleet-row, [role=grid]");
        if (isMarked(target) || (container && isMarked(container))) return;
        unseen.push(`${target.outerHTML.slice(0, 120)} ${focusStyleOf(target)}`);
      });
    });
    let stops = 0;
    for (; stops < STOPS_MAX; stops++) {
      await page.keyboard.press("Tab");
      const hasLeftPage = await page.evaluate(() => document.activeElement === document.body);
      if (hasLeftPage) break;
    }
    expect(stops, "Tab leaves the page after the last stop").toBeLessThan(STOPS_MAX);
    const result = await page.evaluate(() => {
      const { stops, unseen } = window as unknown as { stops: Set<Element>; unseen: string[] };
      const controls = "a[href], button, input, select, textarea, summary, [tabindex], [role=grid]";
      const missed = [...document.querySelectorAll<HTMLElement>(controls)].filter((control) => {
        const isStop = control.tabIndex >= 0 && !control.matches(":disabled");
        const isVisible = control.checkVisibility({ visibilityProperty: true });
        // Only one radio button of a group is a stop.
        const isRadio = control instanceof HTMLInputElement && control.type === "radio";
        return isStop && isVisible && !isRadio && !stops.has(control);
      });
      return { missed: missed.map((control) => control.outerHTML.slice(0, 160)), unseen };
    });
    expect(result.missed, "controls that Tab passes by").toEqual([]);
    expect(result.unseen, "stops that cannot be seen").toEqual([]);
  });
}

test("a chart is read, zoomed and left by keyboard", async ({ page }) => {
  await page.goto(`/hosts/${HOST}?resolution=1m&range=6h`);
  const before = (await drawnChart(page, "Load")).times;
  const area = areaOf(page, "Load");
  await area.focus();
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowLeft");
  await nextFrame(page);
  await expect(chartOf(page, "Load").locator(".chart-time")).not.toContainText("last");
  await page.keyboard.press("+");
  await expect(page).toHaveURL(/start=/);
  await expect
    .poll(async () => (await currentChart(page, "Load")).times.length)
    .toBeLessThan(before.length);
  await page.keyboard.press("0");
  await expect(page).not.toHaveURL(/start=/);
  await page.keyboard.press("f");
  await expect(page).toHaveURL(/full=load/);
  await page.keyboard.press("Escape");
  await expect(page).not.toHaveURL(/full=/);
});

test("menus and zones are chosen by keyboard and return the focus", async ({ page }) => {
  await page.goto(`/hosts/${HOST}?resolution=1m&range=6h`);
  await drawnChart(page, "Load");
  const moreButton = chartOf(page, "Load").getByRole("button", { name: "More", exact: true });
  await moreButton.focus();
  await page.keyboard.press("Enter");
  const firstItem = page.getByRole("menuitemcheckbox", { name: "Logarithmic axis" });
  await expect(firstItem).toBeFocused();
  await page.keyboard.press("Escape");
  await expect(moreButton).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(firstItem).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/log\.load=1/);

  const zoneButton = page.getByRole("button", { name: /^Time zone/ });
  await zoneButton.focus();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("combobox", { name: "Search time zones" })).toBeFocused();
  await page.keyboard.type("St_Johns");
  await page.keyboard.press("Enter");
  await expect(zoneButton).toHaveText("St Johns");
  await expect(zoneButton).toBeFocused();
});
