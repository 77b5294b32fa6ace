import { expect, it } from "vitest";
import { sparkPath, sparkValues } from "./spark-path";

const box = { width: 30, height: 12 };

it("reads a character as one of 62 steps up to the maximum, or as a missing value", () => {
  expect(sparkValues({ last: 1, max: 61, line: "0Zz." })).toEqual([0, 35, 61, null]);
});

it("draws zero at the bottom and the largest value at the top", () => {
  expect(sparkPath({ last: 1, max: 50, line: "0z" }, box)).toBe("M0 11L30 1");
});

it("leaves gaps open, and draws an isolated point as a dash", () => {
  expect(sparkPath({ last: 1, max: 50, line: "00.0.00" }, box)).toBe(
    "M0 11L5 11M15 11h1M25 11L30 11",
  );
});

it("scales by the given maximum, and clips beyond it", () => {
  expect(sparkPath({ last: 1, max: 50, line: "zz" }, box, 100)).toBe("M0 6L30 6");
  expect(sparkPath({ last: 1, max: 200, line: "zz" }, box, 100)).toBe("M0 1L30 1");
});

it("draws a line for zeros, and nothing for an empty line", () => {
  expect(sparkPath({ last: 0, max: 0, line: "00" }, box)).toBe("M0 11L30 11");
  expect(sparkPath({ last: null, max: 0, line: ".." }, box)).toBe("");
});
