import { expect, it } from "vitest";
import { rowOfKey, rowWindow } from "./row-window";

it("covers every visible row at any scroll position", () => {
  for (let above = -500; above < 220_000; above += 333) {
    const { first, end, rowsMax } = rowWindow(above, 900, 44, 5000);
    expect(first * 44).toBeLessThanOrEqual(Math.max(0, above));
    expect(end === 5000 || end * 44 >= above + 900).toBe(true);
    expect(end - first).toBeLessThanOrEqual(rowsMax);
  }
});

it("is empty below a list that became shorter", () => {
  const { first, end } = rowWindow(100_000, 900, 44, 3);
  expect(end - first).toBe(0);
});

it("moves the active row by keyboard within the list", () => {
  expect(rowOfKey("ArrowDown", 4, 5, 10)).toBe(4);
  expect(rowOfKey("ArrowUp", -1, 5, 10)).toBe(0);
  expect(rowOfKey("PageDown", 0, 50, 10)).toBe(10);
  expect(rowOfKey("End", 0, 50, 10)).toBe(49);
  expect(rowOfKey("Home", 9, 50, 10)).toBe(0);
  expect(rowOfKey("x", 9, 50, 10)).toBe(undefined);
});
