/** Actions of a reader on a chart, and the chart's texts. */
import { expect, type Locator, type Page } from "@playwright/test";

/** Returns the card of a chart. */
export function chartOf(page: Page, title: string): Locator {
  return page.getByRole("region", { name: title, exact: true });
}

/** Returns the area between a chart's axes, where the reader points and drags. */
export function areaOf(page: Page, title: string): Locator {
  return chartOf(page, title).getByRole("application");
}

export async function boxOf(area: Locator) {
  await area.scrollIntoViewIfNeeded();
  const box = await area.boundingBox();
  if (!box) throw new Error("the area is not visible");
  return { ...box, at: (part: number) => box.x + part * box.width, middle: box.y + box.height / 2 };
}

/** Drags across the area; positions are fractions of its width. */
export async function drag(page: Page, title: string, from: number, to: number): Promise<void> {
  const { at, middle } = await boxOf(areaOf(page, title));
  await page.mouse.move(at(from), middle);
  await page.mouse.down();
  await page.mouse.move(at((from + to) / 2), middle, { steps: 4 });
  await page.mouse.move(at(to), middle);
  await page.mouse.up();
}

/** Returns the row of options with this label, above the charts. */
export function choiceGroup(page: Page, label: string): Locator {
  return page.getByRole("group", { name: label, exact: true });
}

/** Returns the list of options with this label, above the charts. */
export function choiceList(page: Page, label: string): Locator {
  return page.getByRole("combobox", { name: label, exact: true });
}

/** Chooses among buttons, or in a list. */
export async function choose(page: Page, label: string, choice: string): Promise<void> {
  const list = choiceList(page, label);
  if (await list.isVisible()) {
    await list.selectOption({ label: choice });
    return;
  }
  const button = choiceGroup(page, label).getByRole("button", { name: choice, exact: true });
  await button.click();
  await expect(button).toHaveAttribute("aria-pressed", "true");
}

export async function chooseZone(page: Page, zone: string): Promise<void> {
  await page.getByRole("button", { name: /^Time zone/ }).click();
  await page.getByRole("combobox", { name: "Search time zones" }).fill(zone);
  await page.getByRole("option", { name: zone.replaceAll("_", " ") }).click();
}

export async function chooseFromMenu(page: Page, title: string, item: string): Promise<void> {
  await chartOf(page, title).getByRole("button", { name: "More", exact: true }).click();
  await chartOf(page, title)
    .getByRole(
      /^(Log|Stack|Heat|Compare|Difference)/.test(item) ? "menuitemcheckbox" : "menuitem",
      {
        name: item,
        exact: true,
      },
    )
    .click();
}

/** Returns the legend row of a series. */
export function legendRow(page: Page, title: string, label: string): Locator {
  const name = page.locator(".legend-label").getByText(label, { exact: true });
  return chartOf(page, title).locator(".legend-row").filter({ has: name });
}

/** Waits for the next frame: texts that follow the pointer are written once a frame. */
export async function nextFrame(page: Page): Promise<void> {
  await page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
  );
}

/** Records the texts that are drawn on canvases; runs in the page. */
function recordTexts(): void {
  const written: string[] = [];
  Object.assign(window, { written });
  const prototype = CanvasRenderingContext2D.prototype;
  const write = Object.getOwnPropertyDescriptor(prototype, "fillText")
    ?.value as typeof prototype.fillText;
  prototype.fillText = function (text, ...rest) {
    written.push(text);
    write.call(this, text, ...rest);
  };
}

const recordedTexts = (page: Page) =>
  page.evaluate(() => (window as unknown as { written: string[] }).written);

/** Records the canvas texts of pages opened from now on; returns a function that reads them. */
export async function recordDrawnTexts(page: Page): Promise<() => Promise<string[]>> {
  await page.addInitScript(recordTexts);
  return () => recordedTexts(page);
}

/** Returns the texts drawn on canvases while an action runs. */
export async function textsDrawnDuring(page: Page, act: () => Promise<void>): Promise<string[]> {
  await page.evaluate(recordTexts);
  await act();
  await nextFrame(page);
  return recordedTexts(page);
}
