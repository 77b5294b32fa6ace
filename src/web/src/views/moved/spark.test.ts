import { expect, it } from "vitest";
import { BOX, changeOf, movedSpark } from "./spark";

it("draws gaps as gaps, the stretch and the value before", () => {
  const points = [
    [0, 1],
    [10, 1],
    [20, null],
    [30, 3],
    [40, null],
  ] as const;
  const { path, stretchX, beforeY } = movedSpark(points, 20, 1);
  expect(path).toBe(`M0 54L60 54M180 2h2`);
  expect(stretchX).toBe(BOX.width / 2);
  expect(beforeY).toBe(54);
  expect(movedSpark([], 0, null)).toEqual({ path: "", stretchX: 0, beforeY: undefined });
});

it("names the change of a value", () => {
  expect(changeOf(10, 72)).toBe("× 7.2");
  expect(changeOf(1, 1234)).toBe("× 1,234");
  expect(changeOf(100, 55)).toBe("−45 %");
  expect(changeOf(-100, -112)).toBe("+12 %");
  expect([changeOf(0, 5), changeOf(-1, 5), changeOf(5, -1)]).toEqual(["rose", "rose", "fell"]);
  expect([changeOf(null, 5), changeOf(5, null)]).toEqual(["began", "ended"]);
});
