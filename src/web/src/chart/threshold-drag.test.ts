import { expect, it } from "vitest";
import { isOnThreshold, limitsOf, roundValueAt, type ValueAxis } from "./threshold-drag";

/** An axis of 200 pixels from 0 to `top`. */
const axisTo = (top: number): ValueAxis => ({
  height: 200,
  yOfValue: (value) => 200 * (1 - value / top),
  valueAt: (y) => top * (1 - y / 200),
});

it("takes a threshold near its line only", () => {
  const axis = axisTo(100);
  expect(isOnThreshold(axis, 50, 100)).toBe(true);
  expect(isOnThreshold(axis, 50, 105)).toBe(true);
  expect(isOnThreshold(axis, 50, 110)).toBe(false);
  // A line above the plot cannot be taken at its edge.
  expect(isOnThreshold(axis, 101, 0)).toBe(false);
  expect(isOnThreshold({ ...axis, yOfValue: () => undefined }, 50, 100)).toBe(false);
});

it("rounds to the digits that a pixel can tell apart", () => {
  const at = (top: number, y: number) => roundValueAt(axisTo(top), y, limitsOf(axisTo(top)));
  expect(at(100, 33)).toBe(84);
  expect(at(1, 33)).toBe(0.84);
  expect(at(0.3, 100)).toBe(0.15);
  expect(at(8e9, 33)).toBe(6_700_000_000);
  expect(at(100, -50)).toBe(100);
  expect(at(100, 500)).toBe(0);
});

it("stays within the limits of the axis at the start of a drag", () => {
  expect(roundValueAt(axisTo(1000), 0, { low: 0, high: 100 })).toBe(100);
});
