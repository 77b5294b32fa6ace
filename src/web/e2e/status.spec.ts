/** The lists of the status view, compared with the API's answers. */
import type { CardinalityAnswer } from "../src/api/types";
import { expect, test } from "./support/test";

test("cardinality lists the largest metrics, tags and senders with their changes", async ({
  page,
  daemon,
}) => {
  await page.goto("/status");
  const card = page
    .locator("section")
    .filter({ has: page.getByRole("heading", { name: "Cardinality" }) });
  for (const [list, first] of [
    ["metrics", "Metric"],
    ["tags", "Tag"],
    ["senders", "Sender"],
  ] as const) {
    await card.getByRole("button", { name: `${first}s` }).click();
    const answer = (await daemon.request("/api/v1/cardinality?limit=10")) as CardinalityAnswer;
    const rows = card.getByRole("table").locator("tbody tr");
    await expect(rows).toHaveCount(answer[list].length);
    expect(answer[list].length).toBeGreaterThan(0);
    const names = await rows.getByRole("rowheader").allTextContents();
    expect(names).toEqual(answer[list].map(({ name }) => name));
    const counts = await rows.locator("td:nth-child(2)").allTextContents();
    expect(counts).toEqual(answer[list].map(({ count }) => count.toLocaleString("en")));
    const earlier = await rows.locator("td:nth-child(3)").allTextContents();
    const expected = answer[list].map(({ before }) => before?.toLocaleString("en") ?? "–");
    expect(earlier).toEqual(expected);
  }
  expect(page.url()).toContain("cardinality=senders");
});
