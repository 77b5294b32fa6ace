import { expect, test } from "vitest";
import { completeCount } from "./open-slot";

test("the current slot is not a complete slot", () => {
  expect(completeCount([0, 60, 120], 120)).toBe(2);
  expect(completeCount([0, 60, 120], 0)).toBe(0);
  expect(completeCount([0, 60, 120], 180)).toBe(3);
  expect(completeCount([0, 60, 120], undefined)).toBe(3);
});
