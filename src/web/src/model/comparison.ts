/** Rules that compare a chart's series with a number: the source of its thresholds. */
import type { Kind, Tags } from "../api/types";

type MatcherOperator = "=" | "!=" | "=~" | "!~";

interface Matcher {
  name: string;
  operator: MatcherOperator;
  value: string;
}

/** A comparison of a metric's series with a number. */
export interface Comparison {
  /** The compared expression, as written. */
  text: string;
  /** The compared expression in a normal form. */
  normalized: string;
  metric: string | undefined;
  matchers: Matcher[];
  /** True if the rate per second is compared. */
  isRate: boolean;
  operator: "<" | "<=" | ">" | ">=";
  value: number;
}

const COMPARISON_PATTERN = /^(.*?)(<=|>=|<|>)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*$/is;
const CALL_PATTERN = /^(rate|irate|(?:avg|min|max|last)_over_time)\((.*)\[[^[\]]+\]\s*\)$/s;
const SELECTOR_PATTERN = /^([a-z_:][a-z0-9_:]*)?\s*(?:\{(.*)\})?$/is;
const MATCHER_PATTERN =
  /^\s*([a-z_][a-z0-9_]*)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*(?:,|$)/i;

/** Reads `metric{tags} > number`, with or without a rate; keeps other expressions as they are. */
export function comparisonOf(expression: string): Comparison | undefined {
  const [, compared = "", operator, number = ""] = COMPARISON_PATTERN.exec(expression) ?? [];
  const normalized = compared.trim();
  if (!operator || normalized === "" || joinsSets(normalized)) return undefined;
  const [, call, argument] = CALL_PATTERN.exec(normalized) ?? [];
  const selected = SELECTOR_PATTERN.exec((argument ?? normalized).trim());
  const matchers = selected ? matchersOf(selected[2] ?? "") : undefined;
  return {
    text: normalized,
    normalized: withoutSpaces(normalized),
    metric: matchers ? selected?.[1] : undefined,
    matchers: matchers ?? [],
    isRate: call?.toLowerCase().endsWith("rate") ?? false,
    operator: operator as Comparison["operator"],
    value: Number(number),
  };
}

/** The expression of a comparison with another number. */
export function withThreshold({ text, operator }: Comparison, value: number): string {
  // A comment ends with its line.
  return `${text}${text.includes("#") ? "\n" : " "}${operator} ${value}`;
}

/** Quoted texts, then contents of brackets, from the innermost. */
const QUOTED_PATTERN = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`/gs;
const BRACKET_PATTERN = /\([^()[\]{}]*\)|\[[^()[\]{}]*\]|\{[^()[\]{}]*\}/gs;

/** An expression without quoted texts and brackets. */
export function withoutBrackets(expression: string): string {
  let rest = expression.replace(QUOTED_PATTERN, "");
  for (let previous = ""; previous !== rest;) {
    previous = rest;
    rest = rest.replace(BRACKET_PATTERN, " ");
  }
  return rest;
}

/** Returns true if `and`, `or` and `unless` split the expression: a comparison binds tighter. */
function joinsSets(expression: string): boolean {
  return /\b(?:and|or|unless)\b/i.test(withoutBrackets(expression));
}

function matchersOf(text: string): Matcher[] | undefined {
  const matchers: Matcher[] = [];
  for (let rest = text; rest.trim() !== "";) {
    const [match, name = "", operator, quoted = ""] = MATCHER_PATTERN.exec(rest) ?? [];
    if (match === undefined) return undefined;
    const value = quoted.slice(1, -1).replace(/\\(.)/g, "$1");
    matchers.push({ name, operator: operator as MatcherOperator, value });
    rest = rest.slice(match.length);
  }
  return matchers;
}

/** The normal form of an expression. */
export function withoutSpaces(expression: string): string {
  return expression.replaceAll(/\s+/g, "");
}

/** A chart's line, as far as comparisons need it. */
export interface ComparedSeries {
  metric: string;
  tags: Tags;
  kind: Kind | undefined;
  display: string;
}

const GAUGE_DISPLAYS = ["avg", "min", "max", "first", "last"];

/** Returns true if a rule compares the drawn numbers of a series. */
export function comparesSeries(comparison: Comparison, series: ComparedSeries): boolean {
  if (comparison.metric === undefined || comparison.metric !== series.metric) return false;
  const isComparedNumber = comparison.isRate
    ? series.display === "avg_per_sec"
    : series.kind === "gauge" && GAUGE_DISPLAYS.includes(series.display);
  return isComparedNumber && comparison.matchers.every((matcher) => matches(matcher, series.tags));
}

function matches({ name, operator, value }: Matcher, tags: Tags): boolean {
  const actual = tags[name] ?? "";
  if (operator === "=") return actual === value;
  if (operator === "!=") return actual !== value;
  try {
    return new RegExp(`^(?:${value})$`, "s").test(actual) === (operator === "=~");
  } catch {
    // The pattern is not valid in JavaScript.
    return false;
  }
}
