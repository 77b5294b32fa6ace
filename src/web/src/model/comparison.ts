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
  measured: string;
  metric: string | undefined;
  matchers: Matcher[];
  /** Whether the rate per second is compared. */
  isRate: boolean;
  operator: "<" | "<=" | ">" | ">=";
  value: number;
}

const COMPARED = /^(.*?)(<=|>=|<|>)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*$/is;
const CALLED = /^(rate|irate|(?:avg|min|max|last)_over_time)\((.*)\[[^[\]]+\]\s*\)$/s;
const SELECTED = /^([a-z_:][a-z0-9_:]*)?\s*(?:\{(.*)\})?$/is;
const MATCHER =
  /^\s*([a-z_][a-z0-9_]*)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*(?:,|$)/i;

/** Reads `metric{tags} > number`, also with a rate; keeps other expressions as they are. */
export function comparisonOf(expression: string): Comparison | undefined {
  const [, left = "", operator, number = ""] = COMPARED.exec(expression) ?? [];
  const measured = left.trim();
  if (!operator || measured === "" || joinsSets(measured)) return undefined;
  const [, call, inside] = CALLED.exec(measured) ?? [];
  const selected = SELECTED.exec((inside ?? measured).trim());
  const matchers = selected ? matchersOf(selected[2] ?? "") : undefined;
  return {
    text: measured,
    measured: plain(measured),
    metric: matchers ? selected?.[1] : undefined,
    matchers: matchers ?? [],
    isRate: call?.toLowerCase().endsWith("rate") ?? false,
    operator: operator as Comparison["operator"],
    value: Number(number),
  };
}

/** Quoted texts, then contents of brackets, from the innermost. */
const QUOTED = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`/gs;
const BRACKETED = /\([^()[\]{}]*\)|\[[^()[\]{}]*\]|\{[^()[\]{}]*\}/gs;

/** An expression without quoted texts and brackets. */
export function outermost(expression: string): string {
  let rest = expression.replace(QUOTED, "");
  for (let before = ""; before !== rest;) {
    before = rest;
    rest = rest.replace(BRACKETED, " ");
  }
  return rest;
}

/** Whether `and`, `or` and `unless` split the expression: a comparison binds tighter. */
function joinsSets(expression: string): boolean {
  return /\b(?:and|or|unless)\b/i.test(outermost(expression));
}

function matchersOf(text: string): Matcher[] | undefined {
  const matchers: Matcher[] = [];
  for (let rest = text; rest.trim() !== "";) {
    const [whole, name = "", operator, quoted = ""] = MATCHER.exec(rest) ?? [];
    if (whole === undefined) return undefined;
    const value = quoted.slice(1, -1).replace(/\\(.)/g, "$1");
    matchers.push({ name, operator: operator as MatcherOperator, value });
    rest = rest.slice(whole.length);
  }
  return matchers;
}

/** The normal form of an expression. */
export function plain(expression: string): string {
  return expression.replaceAll(/\s+/g, "");
}

/** A chart's line, as far as comparisons need it. */
export interface ComparedSeries {
  metric: string;
  tags: Tags;
  kind: Kind | undefined;
  display: string;
}

const LEVELS = ["avg", "min", "max", "first", "last"];

/** Whether a rule compares the drawn numbers of a series. */
export function isAbout(comparison: Comparison, series: ComparedSeries): boolean {
  if (comparison.metric === undefined || comparison.metric !== series.metric) return false;
  const isNumber = comparison.isRate
    ? series.display === "avg_per_sec"
    : series.kind === "gauge" && LEVELS.includes(series.display);
  return isNumber && comparison.matchers.every((matcher) => fits(matcher, series.tags));
}

function fits({ name, operator, value }: Matcher, tags: Tags): boolean {
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
