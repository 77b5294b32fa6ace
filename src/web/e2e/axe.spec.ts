/** Accessibility rules that a program can check, on every view, in both themes and sizes. */
import axe from "axe-core";
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
        await page.evaluate(axe.source);
        const violations = await page.evaluate(async () => {
          const { violations } = await window.axe.run(document, {
            runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
            rules: { "landmark-unique": { enabled: true }, "target-size": { enabled: true } },
          });
          return violations.map(({ id, nodes }) => ({
            rule: id,
            nodes: nodes
              .slice(0, 5)
              .map((node) => `${node.html.slice(0, 200)} ${node.failureSummary}`),
          }));
        });
        expect(violations, `at ${size.width} pixels`).toEqual([]);
      }
    });
  }
}
