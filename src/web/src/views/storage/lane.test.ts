import { expect, it } from "vitest";
import type { Partition } from "../../api/types";
import { blocksOf, positionOf, scaleOf } from "./lane";

function partition(start: number, end: number, bytes = 1): Partition {
  return {
    file: String(start),
    start,
    end,
    bytes,
    state: "over",
    dropped_at: end,
    documents: null,
    shells: null,
  };
}

it("spans the oldest to the newest partition, and always includes now", () => {
  expect(scaleOf([partition(20, 30), partition(0, 10)], 25)).toEqual({ start: 0, end: 30 });
  expect(scaleOf([partition(20, 30)], 90)).toEqual({ start: 20, end: 90 });
  expect(scaleOf([partition(20, 30)], 5)).toEqual({ start: 5, end: 30 });
  expect(scaleOf([], 5)).toBe(undefined);
});

it("places blocks by time and fills them by bytes", () => {
  const blocks = blocksOf([partition(0, 10, 25), partition(10, 40, 100)], { start: 0, end: 40 });
  expect(blocks.map(({ left, width, fill }) => [left, width, fill])).toEqual([
    [0, 25, 25],
    [25, 75, 100],
  ]);
});

it("limits places outside to the edges", () => {
  expect(positionOf({ start: 10, end: 20 }, 0)).toBe(0);
  expect(positionOf({ start: 10, end: 20 }, 99)).toBe(100);
});
