import { describe, expect, it } from "vitest";
import { alphaOf, fractionOf, heatGrid } from "./heat";

describe("a heat map", () => {
  const places = { columns: 2, rows: 3, columnOf: [0, 0, 1, 2], rowOf: Math.floor };

  it("counts the series of each cell, and takes the mean of several slots", () => {
    const { counts, most } = heatGrid(
      [
        [0, 0, 2, 1],
        [0, 1, 2, 1],
        [null, undefined, 2, 1],
      ],
      places,
    );
    expect([...counts]).toEqual([1.5, 0.5, 0, 0, 0, 3]);
    expect(most).toBe(3);
  });

  it("leaves out values beyond the axis", () => {
    expect([...heatGrid([[-1, 3, 9, 0]], places).counts]).toEqual([0, 0, 0, 0, 0, 0]);
  });

  it("has linear and logarithmic axes", () => {
    expect(fractionOf(15, 10, 20, false)).toBe(0.5);
    expect(fractionOf(100, 10, 1000, true)).toBeCloseTo(0.5);
    expect(fractionOf(0, 10, 1000, true)).toBe(0);
  });

  it("shows a single series, and more series darker", () => {
    const alphas = [0, 1, 25, 100].map((count) => alphaOf(count, 100));
    expect(alphas[0]).toBe(0);
    expect(alphas[1]).toBeGreaterThan(0.15);
    expect([...alphas].sort((a, b) => a - b)).toEqual(alphas);
    expect(alphaOf(0, 0)).toBe(0);
  });
});
