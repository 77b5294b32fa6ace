import { describe, expect, test } from "vitest";
import {
  freeArea,
  movePanel,
  overlaps,
  placePanel,
  resizePanel,
  compactPanels,
  clampArea,
  type PlacedPanel,
} from "./grid";

const panel = (id: string, x: number, y: number, w = 6, h = 4): PlacedPanel => ({ id, x, y, w, h });
const placesOf = (panels: PlacedPanel[]) =>
  Object.fromEntries(panels.map(({ id, x, y, w, h }) => [id, [x, y, w, h].join(" ")]));

describe("panels", () => {
  test("move up to the top or to another panel", () => {
    const all = compactPanels([panel("a", 0, 9), panel("b", 0, 20), panel("c", 6, 3)]);
    expect(placesOf(all)).toEqual({ a: "0 0 6 4", b: "0 4 6 4", c: "6 0 6 4" });
  });

  test("stay within the columns and above the minimum size", () => {
    expect(clampArea({ x: 11, y: -3, w: 40, h: 0 })).toEqual({ x: 0, y: 0, w: 12, h: 2 });
    expect(clampArea({ x: 11, y: 1.4, w: 3, h: 900 })).toEqual({ x: 9, y: 1, w: 3, h: 40 });
  });

  test("make room for a panel placed on them", () => {
    const all = [panel("a", 0, 0, 12), panel("b", 0, 4, 12), panel("c", 0, 8, 12)];
    expect(placesOf(placePanel(all, "c", { y: 0 }))).toEqual({
      a: "0 4 12 4",
      b: "0 8 12 4",
      c: "0 0 12 4",
    });
  });

  test("of equal size swap places when one is dragged on its neighbour", () => {
    const all = [panel("a", 0, 0), panel("b", 6, 0)];
    expect(placesOf(placePanel(all, "a", { x: 5 }))).toEqual({ a: "6 0 6 4", b: "0 0 6 4" });
  });

  test("never overlap after any sequence of edits", () => {
    let randomState = 7;
    const random = (below: number) => {
      randomState = (randomState * 1103515245 + 12345) % 2147483648;
      return randomState % below;
    };
    let all = compactPanels(
      Array.from({ length: 12 }, (_, at) =>
        panel(`p${at}`, random(12), random(30), random(13), random(9)),
      ),
    );
    for (let round = 0; round < 500; round++) {
      const id = `p${random(12)}`;
      all = placePanel(all, id, { x: random(12), y: random(40), w: random(13), h: random(9) });
      for (const panel of all) {
        for (const other of all) {
          if (panel.id !== other.id) expect(overlaps(panel, other), `round ${round}`).toBe(false);
        }
      }
      expect(compactPanels(all)).toEqual(all);
    }
  });
});

describe("by keyboard", () => {
  const all = [panel("a", 0, 0, 12, 5), panel("b", 0, 5, 12, 3)];

  test("a panel moves past its neighbour", () => {
    expect(placesOf(movePanel(all, "b", "up"))).toEqual({ b: "0 0 12 3", a: "0 3 12 5" });
    expect(placesOf(movePanel(all, "a", "down"))).toEqual({ b: "0 0 12 3", a: "0 3 12 5" });
  });

  test("a panel at the edge stays", () => {
    expect(movePanel(all, "a", "up")).toEqual(all);
    expect(movePanel(all, "b", "down")).toEqual(all);
    expect(movePanel(all, "a", "left")).toEqual(all);
  });

  test("a panel is resized by steps, up to the last column", () => {
    const two = [panel("a", 0, 0), panel("b", 6, 0)];
    expect(placesOf(resizePanel(two, "a", "right"))).toEqual({ a: "0 0 7 4", b: "6 4 6 4" });
    expect(placesOf(resizePanel(two, "b", "right"))).toEqual(placesOf(two));
    expect(placesOf(resizePanel(two, "b", "down"))).toEqual({ a: "0 0 6 4", b: "6 0 6 5" });
  });
});

test("a new panel takes the first free place of its size", () => {
  const all = [panel("a", 0, 0), panel("b", 0, 4, 12)];
  expect(freeArea(all, 6, 4)).toEqual({ x: 6, y: 0, w: 6, h: 4 });
  expect(freeArea(all, 6, 5)).toEqual({ x: 0, y: 8, w: 6, h: 5 });
  expect(freeArea([], 12, 3)).toEqual({ x: 0, y: 0, w: 12, h: 3 });
});
