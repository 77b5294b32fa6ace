import { expect, it } from "vitest";
import { numberText, treeOf, type Node } from "./tree-model";

function flat(nodes: Node[], indent = ""): string[] {
  return nodes.flatMap((node) =>
    node.kind === "value"
      ? [`${indent}${node.name}=${node.text}${node.slot >= 0 ? ` @${node.slot}` : ""}`]
      : [`${indent}${node.name} #${node.slot}`, ...flat(node.nodes, `${indent} `)],
  );
}

it("numbers the cells of a document as its slots", () => {
  const nested = { metric: "m", values: { "0": { n: 0 }, "1": { n: 2, sum: 1.5 } } };
  expect(flat(treeOf(nested))).toEqual([
    'metric="m"',
    "values #-1",
    " 0 #0",
    "  n=0 @0",
    " 1 #1",
    "  n=2 @1",
    "  sum=1.5 @1",
  ]);
});

it("continues the slots through the minutes of an hour, in numeric order", () => {
  const nested = { values: { "10": { "0": { n: 1 } }, "9": { "30": { n: 1 }, "0": { n: 1 } } } };
  expect(flat(treeOf(nested)).filter((line) => line.includes("#"))).toEqual([
    "values #-1",
    " 9 #-1",
    "  0 #0",
    "  30 #1",
    " 10 #-1",
    "  0 #2",
  ]);
});

it("never treats a tag as a cell, whatever the tag's name", () => {
  const nodes = treeOf({ tags: { n: "<b>" }, values: {} });
  expect(flat(nodes)).toEqual(["tags #-1", ' n="<b>"', "values #-1"]);
});

it("shows nothing for an invalid document", () => {
  expect(treeOf(null)).toEqual([]);
  expect(treeOf("text")).toEqual([]);
});

it("writes stored numbers without insignificant digits", () => {
  expect([0.1 + 0.2, 1e21, -3, null].map(numberText)).toEqual([
    "0.3",
    "1e+21",
    "-3",
    "not a finite number",
  ]);
});
