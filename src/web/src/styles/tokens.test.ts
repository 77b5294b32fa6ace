import { expect, test } from "vitest";
import styles from "./tokens.css?raw";

const darkBlocks = [...styles.matchAll(/dark;\n([^}]*)\}/g)].map(([, block = ""]) => block);

function colours(block = ""): Map<string, string> {
  const pairs = block.matchAll(/(--[a-z-]+):\s*([^;]+);/g);
  return new Map([...pairs].map(([, name = "", value = ""]) => [name, value]));
}

test("the system's dark background equals the chosen dark background", () => {
  const [bySystem, byChoice] = darkBlocks.map(colours);
  expect([...(bySystem?.keys() ?? [])]).toEqual(["--bg", "--text"]);
  for (const [name, value] of bySystem ?? []) expect(byChoice?.get(name)).toBe(value);
});
