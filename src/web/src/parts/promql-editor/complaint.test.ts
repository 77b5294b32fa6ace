import { expect, test } from "vitest";
import { complaintOf } from "./complaint";

const PREFIX = 'invalid parameter "query": ';

function expectComplaint(
  error: string,
  expression: string,
  underlined: string | undefined,
  message: string,
) {
  const complaint = complaintOf(error, expression);
  const { at: span } = complaint;
  expect(span && expression.slice(span.from, span.to)).toBe(underlined);
  expect(complaint.message).toBe(message);
}

test("an error is shown at the word where it begins", () => {
  const message = "expected type range vector";
  expectComplaint(`${PREFIX}1:5: parse error: ${message}`, "sum(rate(foo))", "rate", message);
  expectComplaint(
    `${PREFIX}3:3: parse error: unknown`,
    "sum(\n  a +\n  bogus(x))",
    "bogus",
    "unknown",
  );
  expectComplaint("2:1: parse error: x", 'a\n"text here"', '"text here"', "x");
});

test("columns are bytes", () => {
  expectComplaint("1:10: parse error: x", '"größe" + bogus(x)', " ", "x");
  expectComplaint("1:13: parse error: x", '"größe" + bogus(x)', "bogus", "x");
});

test("an error at the end is shown at the last character", () => {
  expectComplaint(
    "1:4: parse error: unexpected end of input",
    "a +",
    "+",
    "unexpected end of input",
  );
});

test("an error without a position, or with an invalid one, has no place", () => {
  expectComplaint(
    `${PREFIX}parse error: unclosed left parenthesis`,
    "sum(",
    undefined,
    "unclosed left parenthesis",
  );
  expectComplaint("9:1: parse error: x", "a", undefined, "x");
});
