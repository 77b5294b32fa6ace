/** Text that is cut off or overlaps other text, on every view at both sizes. */
import { expect, test } from "./support/test";
import { openSettled } from "./support/settled";
import { textProblems } from "./support/texts";
import { SIZES, VIEWS } from "./support/views";

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
