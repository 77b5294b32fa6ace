/** Expressions of MetricsQL with a plain meaning, in PromQL. Pure. */

import { withOffsetsInside } from "./offsets";

/** Functions of windows; MetricsQL adds a window of one step when it is missing. */
const OF_WINDOWS = /^(?:rate|irate|increase|delta|idelta|deriv|changes|resets|\w+_over_time)$/;
const SELECTOR =
  /^(?:[a-zA-Z_:][\w:]*)?(?:\s*\{(?:[^{}"']|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')*\})?$/;
/** `1h_ms`: an hour in milliseconds. */
const LENGTH_IN_MS = /^(\d+)(ms|[smhdwy])_ms\b/;
const STRING = /^"(?:[^"\\]|\\.)*"$|^'(?:[^'\\]|\\.)*'$/;

const UNITS_MS: Record<string, number> = {
  ...{ ms: 1, s: 1000, m: 60_000, h: 3_600_000 },
  ...{ d: 86_400_000, w: 7 * 86_400_000, y: 365 * 86_400_000 },
};

/** Rewrites an expression. */
export function plainPromql(text: string): string {
  return withOffsetsInside(withPlainCalls(text));
}

/** Rewrites calls from the innermost to the outermost, and lengths of time in milliseconds. */
function withPlainCalls(text: string): string {
  let written = "";
  for (let at = 0; at < text.length;) {
    const end = endOfString(text, at);
    if (end > at) {
      written += text.slice(at, end);
      at = end;
      continue;
    }
    const [length = "", count, unit = ""] = LENGTH_IN_MS.exec(text.slice(at)) ?? [];
    if (length && !/[\w$:.]/.test(text.charAt(at - 1))) {
      const isWindow = /[[:]\s*$/.test(written);
      written += isWindow ? `${count}${unit}` : String(Number(count) * (UNITS_MS[unit] ?? 1));
      at += length.length;
      continue;
    }
    const [name = ""] = /^[a-zA-Z_:][\w:]*/.exec(text.slice(at)) ?? [];
    const rest = text.slice(at + name.length);
    const [open = ""] = name ? (/^\s*\(/.exec(rest) ?? []) : [];
    const from = at + name.length + open.length;
    const args = open ? argumentsFrom(text, from) : undefined;
    if (!args) {
      written += text.slice(at, at + Math.max(name.length, 1));
      at += Math.max(name.length, 1);
      continue;
    }
    const [grouping = ""] = /^\s*(?:by|without)\s*\([^()]*\)/.exec(text.slice(args.end)) ?? [];
    const { call, isGrouped } = callOf(name + open, args.list.map(withPlainCalls), grouping);
    written += call;
    at = args.end + (isGrouped ? grouping.length : 0);
  }
  return written;
}

function callOf(head: string, args: string[], grouping: string) {
  const name = head.replace(/\s*\($/, "");
  const [first = "", ...others] = args.map((arg) => arg.trim());
  const plain = { call: `${head}${args.join(",")})`, isGrouped: false };
  if (OF_WINDOWS.test(name) && others.length === 0 && first !== "" && SELECTOR.test(first))
    return { call: `${name}(${first}[$__interval])`, isGrouped: false };
  const labels = others.map((text) => text.slice(1, -1));
  const areLabels = others.length > 0 && others.every((text) => STRING.test(text));
  // Labels that leave series apart: `max` only removes the other labels.
  if (name === "label_keep" && areLabels)
    return { call: `max by (${labels.join(", ")}) (${first})`, isGrouped: false };
  if (name === "label_del" && areLabels)
    return { call: `max without (${labels.join(", ")}) (${first})`, isGrouped: false };
  if (name === "sum" && others.length > 0) {
    const sums = [first, ...others].map((arg) => `sum(${arg})${grouping}`);
    return { call: `(${sums.join(" + ")})`, isGrouped: true };
  }
  return plain;
}

/** The end of the string that begins here, or the same position. */
function endOfString(text: string, at: number): number {
  const [string = ""] =
    /^(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)/.exec(text.slice(at)) ?? [];
  return at + string.length;
}

/** The arguments from this position to the closing parenthesis; `undefined` without one. */
function argumentsFrom(text: string, from: number): { list: string[]; end: number } | undefined {
  const list: string[] = [];
  let [depth, begin] = [0, from];
  for (let at = from; at < text.length; at++) {
    const end = endOfString(text, at);
    if (end > at) {
      at = end - 1;
      continue;
    }
    const letter = text.charAt(at);
    if ("([{".includes(letter)) depth++;
    else if (depth === 0 && (letter === ")" || letter === ",")) {
      list.push(text.slice(begin, at));
      begin = at + 1;
      if (letter === ")") return { list, end: at + 1 };
    } else if (")]}".includes(letter)) depth--;
  }
  return undefined;
}
