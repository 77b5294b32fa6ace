/** Accessibility rules that a program can check. */
import type { Page } from "@playwright/test";
import axe from "axe-core";

export interface Violation {
  rule: string;
  /** The first elements, with what is wrong about them. */
  nodes: string[];
}

/** Returns the violations of the rules by the page as it is now. */
export async function axeViolations(page: Page): Promise<Violation[]> {
  await page.evaluate(axe.source);
  return page.evaluate(async () => {
    const { violations } = await window.axe.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
      rules: { "landmark-unique": { enabled: true }, "target-size": { enabled: true } },
    });
    return violations.map(({ id, nodes }) => ({
      rule: id,
      nodes: nodes.slice(0, 5).map((node) => `${node.html.slice(0, 200)} ${node.failureSummary}`),
    }));
  });
}
