import { expect, test } from "vitest";
import { nextOrder, rowOrder, summaryOf } from "./summary";

test("empty slots are ignored, and zero is a number", () => {
  expect(summaryOf([null, 0, 4, undefined, null])).toEqual({ last: 4, min: 0, max: 4, avg: 2 });
  expect(summaryOf([3, null])).toMatchObject({ last: 3 });
  expect(summaryOf([null, NaN])).toEqual({ last: null, min: null, max: null, avg: null });
});

test("rows are sorted by a column, and rows without a number come last in both directions", () => {
  const values = [1, null, 3, 0];
  const valueOfRow = (row: number) => values[row];
  expect(rowOrder(4, { column: 0, isDescending: true }, valueOfRow)).toEqual([2, 0, 3, 1]);
  expect(rowOrder(4, { column: 0, isDescending: false }, valueOfRow)).toEqual([3, 0, 2, 1]);
  expect(rowOrder(4, { column: -1, isDescending: true }, valueOfRow)).toEqual([3, 2, 1, 0]);
});

test("a column is sorted in descending order first, and times in ascending order", () => {
  const firstOrder = nextOrder({ column: -1, isDescending: false }, 2);
  expect(firstOrder).toEqual({ column: 2, isDescending: true });
  expect(nextOrder(firstOrder, 2)).toEqual({ column: 2, isDescending: false });
  expect(nextOrder(firstOrder, -1)).toEqual({ column: -1, isDescending: false });
});
