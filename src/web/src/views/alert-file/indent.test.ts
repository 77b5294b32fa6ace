import { expect, it } from "vitest";
import { indentAfter } from "./indent";

it("aligns a new line with the keys above", () => {
  const after = (text: string) => indentAfter(text, text.length).length;
  expect(after("")).toBe(0);
  expect(after("groups:")).toBe(0);
  expect(after("groups:\n  - name: a")).toBe(4);
  expect(after("groups:\n- name: a\n  rules:")).toBe(2);
  // Only what is before the caret counts.
  expect(indentAfter("  - alert: a\n    expr: b", 3)).toBe("  ");
  expect(indentAfter("    expr: b", 2)).toBe("  ");
});
