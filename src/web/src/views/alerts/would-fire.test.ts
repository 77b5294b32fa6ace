import { expect, it } from "vitest";
import type { PromqlMatrix } from "../../api/types";
import { wouldFire } from "./would-fire";

const STEP = 300_000;
const MINUTE = 60_000;

/** A result with a value at each of these steps. */
function matrix(...series: number[][]): PromqlMatrix {
  const values = (steps: number[]) =>
    steps.map((step): [number, string] => [(step * STEP) / 1000, "1"]);
  return {
    resultType: "matrix",
    result: series.map((steps, k) => ({ metric: { host: `h${k}` }, values: values(steps) })),
  };
}

it("counts each run of steps that lasts as long as the rule waits", () => {
  const found = wouldFire(matrix([1, 2, 3, 10], [3, 4, 5, 6]), STEP, 10 * MINUTE);
  expect(found.spans).toEqual([
    { start: 3 * STEP, end: 4 * STEP },
    { start: 5 * STEP, end: 7 * STEP },
  ]);
  expect(found.series).toBe(2);
  expect(found.totalMs).toBe(3 * STEP);
  expect(wouldFire(matrix([1, 2, 3]), STEP, 7 * MINUTE).spans).toEqual([
    { start: 3 * STEP, end: 4 * STEP },
  ]);
});

it("counts a single step when the wait is shorter than a step, and overlaps once", () => {
  const found = wouldFire(matrix([1], [1, 2], []), STEP, MINUTE);
  expect(found).toEqual({
    spans: [
      { start: STEP, end: 2 * STEP },
      { start: STEP, end: 3 * STEP },
    ],
    series: 2,
    totalMs: 2 * STEP,
  });
  expect(wouldFire(matrix(), STEP, 0)).toEqual({ spans: [], series: 0, totalMs: 0 });
});
