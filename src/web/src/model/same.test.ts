import { expect, it } from "vitest";
import { isSame } from "./same";

it("compares values, whatever the order of properties", () => {
  expect(isSame({ a: [1, { b: "x" }], c: null }, { c: null, a: [1, { b: "x" }] })).toBe(true);
  expect(isSame({ a: undefined }, {})).toBe(true);
  expect(isSame(NaN, NaN)).toBe(true);
});

it.each([
  [{ a: 1 }, { a: 2 }],
  [{ a: 1 }, { a: 1, b: 1 }],
  [{ a: null }, {}],
  [[1, 2], [1]],
  [[undefined], []],
  [[], {}],
  [{ 0: 1 }, [1]],
  ["1", 1],
  [null, {}],
])("distinguishes %j from %j", (a, b) => {
  expect(isSame(a, b)).toBe(false);
  expect(isSame(b, a)).toBe(false);
});
