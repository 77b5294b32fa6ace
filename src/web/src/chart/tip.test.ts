import { expect, it } from "vitest";
import { isTipAbove } from "./tip";

it("puts the box on the side with more space, unless only the other side has room for it", () => {
  const isAbove = (y: number, above: number, below: number) =>
    isTipAbove({ y, height: 200, above, below }, 150);
  // The lower half of the plot, then the upper half.
  expect([isAbove(150, 500, 500), isAbove(50, 500, 500)]).toEqual([true, false]);
  expect([isAbove(150, 100, 500), isAbove(50, 500, 100)]).toEqual([false, true]);
  expect([isAbove(150, 100, 100), isAbove(50, 100, 100)]).toEqual([true, false]);
});
