import { describe, expect, test } from "vitest";
import { blocksOf, inlinesOf, safeHref } from "./markdown";

const textPart = (textPart: string) => ({ kind: "text", text: textPart });

describe("a text panel", () => {
  test("has headings, paragraphs, lists and code", () => {
    const blocks = blocksOf("# One\ntwo\nthree\n\n- a\n- b\n1. c\n\n```\n<b>\n\n# x\n```\nend");
    expect(blocks).toEqual([
      { kind: "heading", level: 2, of: [textPart("One")] },
      { kind: "paragraph", of: [textPart("two\nthree")] },
      { kind: "list", ordered: false, items: [[textPart("a")], [textPart("b")]] },
      { kind: "list", ordered: true, items: [[textPart("c")]] },
      { kind: "code", text: "<b>\n\n# x" },
      { kind: "paragraph", of: [textPart("end")] },
    ]);
  });

  test("shows code without an end mark up to its end", () => {
    expect(blocksOf("```\na\nb")).toEqual([{ kind: "code", text: "a\nb" }]);
  });

  test("has bold, emphasis, code and links within a line", () => {
    expect(inlinesOf("a **b `c`** *d* [e *f*](https://example.org/x)")).toEqual([
      textPart("a "),
      { kind: "strong", of: [textPart("b "), { kind: "code", text: "c" }] },
      textPart(" "),
      { kind: "em", of: [textPart("d")] },
      textPart(" "),
      {
        kind: "link",
        href: "https://example.org/x",
        of: [textPart("e "), { kind: "em", of: [textPart("f")] }],
      },
    ]);
  });

  test("leaves HTML and links to other schemes as text", () => {
    for (const source of [
      "<img src=x onerror=alert(1)>",
      "[x](javascript:alert(1))",
      "[x](//evil.example)",
      "[x](data:text/html,hi)",
      "[x](/api/v1/hosts)",
    ]) {
      const texts = inlinesOf(source).map((part) => ("text" in part ? part.text : "?"));
      expect(texts.join("")).toBe(source);
    }
  });

  test("of many unclosed marks is parsed in linear time", () => {
    for (const source of ["*".repeat(50_000), "[".repeat(50_000), "`a".repeat(25_000)]) {
      expect(blocksOf(source)).toHaveLength(1);
    }
  }, 60_000);
});

test("links lead only to http and https", () => {
  expect(safeHref("https://a.example/?q=1")).toBe("https://a.example/?q=1");
  for (const href of ["javascript:alert(1)", "JAVASCRIPT:x", "ftp://a", "https://", "x"]) {
    expect(safeHref(href)).toBeUndefined();
  }
});
