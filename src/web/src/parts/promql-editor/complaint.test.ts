import { expect, test } from "vitest";
import { complaintOf } from "./complaint";

const PREFIX = 'invalid parameter "query": ';

function check(error: string, expression: string, underlined: string | undefined, message: string) {
  const complaint = complaintOf(error, expression);
  const { at } = complaint;
  expect(at && expression.slice(at.from, at.to)).toBe(underlined);
  expect(complaint.message).toBe(message);
}

test("an error is shown at the word where it begins", () => {
  const message = "expected type range vector";
  check(`${PREFIX}1:5: parse error: ${message}`, "sum(rate(foo))", "rate", message);
  check(`${PREFIX}3:3: parse error: unknown`, "sum(\n  a +\n  bogus(x))", "bogus", "unknown");
  check("2:1: parse error: x", 'a\n"text here"', '"text here"', "x");
});

test("columns are bytes", () => {
  check("1:10: parse error: x", '"größe" + bogus(x)', " ", "x");
  check("1:13: parse error: x", '"größe" + bogus(x)', "bogus", "x");
});

test("an error at the end is shown at the last character", () => {
  check("1:4: parse error: unexpected end of input", "a +", "+", "unexpected end of input");
});

test("an error without a position, or with an invalid one, has no place", () => {
  check(
    `${PREFIX}parse error: unclosed left parenthesis`,
    "sum(",
    undefined,
    "unclosed left parenthesis",
  );
  check("9:1: parse error: x", "a", undefined, "x");
});
