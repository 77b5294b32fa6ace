import { expect, it } from "vitest";
import { choiceOf, nextSort, tagsOf, tagsParam, withTag } from "./choice";

it("reads tags that contain commas, equal and percent signs as they were written", () => {
  const tags = new Map([["a=b", new Set(["1,2", "100%"])]]);
  expect(tagsOf(tagsParam(tags))).toEqual(tags);
});

it("reads unescaped text as it is", () => {
  expect(tagsOf("disk=50%,x,=y")).toEqual(new Map([["disk", new Set(["50%"])]]));
});

it("adds a value and removes it", () => {
  const oneValue = withTag(new Map(), "role", "db");
  expect(oneValue).toBe("role=db");
  const twoValues = withTag(tagsOf(oneValue), "role", "web");
  expect(twoValues).toBe("role=db,role=web");
  expect(withTag(tagsOf(twoValues), "role", "db")).toBe("role=web");
  expect(withTag(tagsOf(oneValue), "role", "db")).toBe("");
});

it("reverses a column that is chosen again, and omits the default order from the address", () => {
  const sortedBy = (sort: string) => choiceOf(new URLSearchParams({ sort }));
  expect(nextSort(sortedBy(""), "cpu")).toBe("-cpu");
  expect(nextSort(sortedBy("-cpu"), "cpu")).toBe("cpu");
  expect(nextSort(sortedBy("-cpu"), "host")).toBe("host");
  expect(nextSort(sortedBy("-cpu"), "state")).toBe(undefined);
  expect(nextSort(sortedBy(""), "state")).toBe("state");
});

it("ignores unknown columns and states", () => {
  const choice = choiceOf(new URLSearchParams("sort=-constructor&state=odd"));
  expect(choice).toMatchObject({ column: "state", descending: true, state: undefined });
});
