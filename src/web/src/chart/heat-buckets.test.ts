import { describe, expect, it } from "vitest";
import type { Distribution } from "../api/types";
import type { DrawnSeries } from "./data";
import { bucketGrid, cellText, extentOf, fitsLogAxis } from "./heat-buckets";

const UNIT = { word: "seconds", perSecond: false };

function line(distribution?: Distribution): DrawnSeries {
  const names = { key: "wait p50", metric: "wait", tags: {}, label: "p50", display: "p50" };
  return {
    ...names,
    kind: "histogram",
    unit: UNIT,
    values: [1],
    ...(distribution && { distribution }),
  };
}

const fine: Distribution = {
  bounds: [
    [1, 2],
    [2, 4],
    [16, null],
  ],
  counts: [[1, 2, 3], []],
};

describe("a heat map of histograms", () => {
  it("has the observations of each line once, and none of hidden lines", () => {
    const percentiles = [line(fine), line(fine), line()];
    const expected = { rows: [...fine.bounds.slice(0, 2), [16, 32]], counts: fine.counts };
    expect(bucketGrid(percentiles, [true, true, true])).toEqual(expected);
    expect(bucketGrid(percentiles, [false, false, true])).toEqual({ rows: [], counts: [] });
    expect(bucketGrid([line()], [true])).toBeUndefined();
  });

  it("adds histograms with other buckets, without losing an observation", () => {
    const coarse: Distribution = { bounds: [[1, 4]], counts: [[10], [4]] };
    const grid = bucketGrid([line(fine), line(coarse)], [true, true]);
    expect(grid).toEqual({
      rows: [
        [1, 2],
        [2, 4],
        [16, 32],
      ],
      counts: [
        [6, 7, 3],
        [2, 2, 0],
      ],
    });
  });

  it("divides a bucket by the width of its parts, and keeps buckets without width", () => {
    const whole: Distribution = {
      bounds: [
        [0, 0],
        [0, 8],
        [8, 64],
      ],
      counts: [[5, 8, 6]],
    };
    const parts: Distribution = {
      bounds: [
        [0, 2],
        [2, 16],
        [16, 64],
      ],
      counts: [[1, 0, 0]],
    };
    const grid = bucketGrid([line(whole), line(parts)], [true, true]);
    expect(grid?.rows).toEqual([
      [0, 0],
      [0, 2],
      [2, 8],
      [8, 16],
      [16, 64],
    ]);
    const [counts = []] = grid?.counts ?? [];
    [5, 3, 6, 2, 4].forEach((expected, row) => expect(counts[row]).toBeCloseTo(expected));
    expect(counts.reduce((sum, count) => sum + count, 0)).toBeCloseTo(20);
  });

  it("has finite edges", () => {
    const bounds: Distribution["bounds"] = [
      [null, -Number.MAX_VALUE],
      [Number.MAX_VALUE, null],
    ];
    const grid = bucketGrid([line({ bounds, counts: [] })], [true]);
    expect(grid?.rows.flat().every(Number.isFinite)).toBe(true);
  });

  it("has an axis for all cells; zero has no place on a logarithmic one", () => {
    const withZero: Distribution = { bounds: [[-1e-9, 1e-9], ...fine.bounds], counts: [] };
    const grid = {
      rows: [[-1e-9, 1e-9] as [number, number], [1, 2] as [number, number]],
      counts: [],
    };
    expect(extentOf(grid, true)).toEqual([1, 2]);
    expect(extentOf({ rows: [[0, 0.5]], counts: [] }, true)).toEqual([0.25, 0.5]);
    expect(extentOf({ rows: [[-4, -2]], counts: [] }, false)).toEqual([-4, -2]);
    expect(fitsLogAxis([line(withZero)])).toBe(true);
    expect(fitsLogAxis([line({ bounds: [[-4, -2]], counts: [] })])).toBe(false);
  });

  it("describes the cell at a value", () => {
    const grid = bucketGrid([line(fine)], [true]);
    if (!grid) throw new Error("no grid");
    expect(cellText(grid, 0, 3, UNIT)).toBe("2 s to 4 s: 2 of 6 observations");
    expect(cellText(grid, 0, 8, UNIT)).toBe("");
    expect(cellText(grid, 1, 3, UNIT)).toBe("");
  });
});
