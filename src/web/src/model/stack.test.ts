import { describe, expect, it } from "vitest";
import { isolatedPoints, stackValues } from "./stack";

describe("stacks", () => {
  it("are sums of the series shown below", () => {
    expect(
      stackValues(
        [
          [1, 2],
          [10, 20],
          [100, 200],
        ],
        [true, true, true],
      ),
    ).toEqual([
      [1, 2],
      [11, 22],
      [111, 222],
    ]);
    expect(
      stackValues(
        [
          [1, 2],
          [10, 20],
          [100, 200],
        ],
        [true, false, true],
      )[2],
    ).toEqual([101, 202]);
  });

  it("have a gap only where no series has a value", () => {
    expect(
      stackValues(
        [
          [1, null, null],
          [2, 3, null],
        ],
        [true, true],
      ),
    ).toEqual([
      [1, 0, null],
      [3, 3, null],
    ]);
  });

  it("keep zero as zero", () => {
    expect(stackValues([[0], [0]], [true, true])).toEqual([[0], [0]]);
  });
});

describe("isolated points", () => {
  it("have gaps or ends on both sides", () => {
    expect(isolatedPoints([1, null, 2, 3, null, 4])).toEqual([0, 5]);
    expect(isolatedPoints([1, 2])).toEqual([]);
    expect(isolatedPoints([null, 7, null])).toEqual([1]);
    expect(isolatedPoints([5])).toEqual([0]);
    expect(isolatedPoints([])).toEqual([]);
  });

  it("are not created by the times of other series", () => {
    expect(isolatedPoints([1, undefined, 2, null, undefined, 3, undefined])).toEqual([5]);
  });
});
