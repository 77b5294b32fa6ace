import { describe, expect, it } from "vitest";
import { csv, textField } from "./csv";

describe("fields", () => {
  it.each([
    ["plain", "plain"],
    ['say "hi"', '"say ""hi"""'],
    ["a,b", '"a,b"'],
    ["two\nlines", '"two\nlines"'],
    ["=1+1", "'=1+1"],
    ['=HYPERLINK("http://x","y")', `"'=HYPERLINK(""http://x"",""y"")"`],
    ["+1", "'+1"],
    [" a ", '" a "'],
    ["-1", "'-1"],
    ["@SUM(A1)", "'@SUM(A1)"],
    ["  =1", "'  =1"],
    ["\t=1", `'\t=1`],
    ["<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"],
  ])("%j is safe and read back as it is", (text, field) => {
    expect(textField(text)).toBe(field);
  });
});

describe("a table", () => {
  it("has empty fields for empty slots, zero as zero and negative numbers as numbers", () => {
    const text = csv({
      head: ["time", 'a{b="c"}'],
      times: ["2026-03-29T01:00:00+01:00", "2026-03-29T03:00:00+02:00", "x"],
      columns: [[0, null, -1.5]],
    });
    expect(text).toBe(
      'time,"a{b=""c""}"\r\n2026-03-29T01:00:00+01:00,0\r\n2026-03-29T03:00:00+02:00,\r\nx,-1.5\r\n',
    );
  });
});
