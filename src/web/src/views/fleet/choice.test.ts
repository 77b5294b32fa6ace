import { expect, it } from "vitest";
import { choiceOf, nextSort, tagsOf, tagsParam, withTag } from "./choice";

it("reads back tags that hold commas, equal and percent signs", () => {
  const tags = new Map([["a=b", new Set(["1,2", "100%"])]]);
  expect(tagsOf(tagsParam(tags))).toEqual(tags);
});

it("takes what is not escaped as it is", () => {
  expect(tagsOf("disk=50%,x,=y")).toEqual(new Map([["disk", new Set(["50%"])]]));
});

it("adds a value, and takes it away again", () => {
  const one = withTag(new Map(), "role", "db");
  expect(one).toBe("role=db");
  const two = withTag(tagsOf(one), "role", "web");
  expect(two).toBe("role=db,role=web");
  expect(withTag(tagsOf(two), "role", "db")).toBe("role=web");
  expect(withTag(tagsOf(one), "role", "db")).toBe("");
});

it("turns a column round when it is chosen again, and leaves the usual order out of the address", () => {
  const of = (sort: string) => choiceOf(new URLSearchParams({ sort }));
  expect(nextSort(of(""), "cpu")).toBe("-cpu");
  expect(nextSort(of("-cpu"), "cpu")).toBe("cpu");
  expect(nextSort(of("-cpu"), "host")).toBe("host");
  expect(nextSort(of("-cpu"), "state")).toBe(undefined);
  expect(nextSort(of(""), "state")).toBe("state");
});

it("takes no column and no state that there is not", () => {
  const choice = choiceOf(new URLSearchParams("sort=-constructor&state=odd"));
  expect(choice).toMatchObject({ column: "state", descending: true, state: undefined });
});
