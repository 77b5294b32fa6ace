/** Accessibility rules that a program can check, on every view, in both themes and sizes. */
import { axeViolations } from "./support/axe";
import { openSettled } from "./support/settled";
import { expect, test } from "./support/test";
import { SIZES, VIEWS } from "./support/views";

for (const view of VIEWS) {
  for (const colorScheme of ["dark", "light"] as const) {
    test(`axe finds nothing on the ${view.name} view, ${colorScheme}`, async ({ page }) => {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      for (const size of SIZES) {
        await page.setViewportSize(size);
        await openSettled(page, view.path);
        // The browser may report its theme to a new page a moment late.
        await expect(page.locator("html")).toHaveAttribute("data-theme", colorScheme);
        expect(await axeViolations(page), `at ${size.width} pixels`).toEqual([]);
      }
    });
  }
}
