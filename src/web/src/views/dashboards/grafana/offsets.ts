/**
 * `offset` behind an expression, as in MetricsQL: PromQL has it behind selectors only, so it moves
 * to each selector of the expression. Pure.
 */

const OFFSET = /\)\s*offset\s+(-?(?:\d+(?:ms|[smhdwy]))+|\$\w+|\$\{\w+\})/g;
const LABEL_LISTS = ["by", "without", "on", "ignoring", "group_left", "group_right"];
const WORDS = ["and", "or", "unless", "bool", "atan2", "inf", "nan"];
/** A string, a number with its unit, a name, a variable, or one other character. */
const TOKEN =
  /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`|\d[\w.]*|[a-zA-Z_:][\w:]*|\$\w+|\$\{\w+\}|\s+|./gs;

/** Moves each offset behind an expression to its selectors, where that has the same meaning. */
export function withOffsetsInside(text: string): string {
  for (const { 0: found, 1: offset = "", index } of text.matchAll(OFFSET)) {
    const tokens = text.slice(0, index + 1).match(TOKEN) ?? [];
    // A quote that is a token has no end before the offset, which is in a string.
    if (tokens.some((token) => /^["'`]$/.test(token))) continue;
    const open = openOfArguments(tokens);
    if (open === undefined) continue;
    const moved = withOffset(tokens.slice(open), offset);
    if (moved === undefined) continue;
    const rest = text.slice(index + found.length);
    // Positions have changed, and the remaining text may contain further offsets.
    return withOffsetsInside(tokens.slice(0, open).join("") + moved + rest);
  }
  return text;
}

/** The index of the parenthesis with the arguments; a list of labels can be behind them. */
function openOfArguments(tokens: readonly string[]): number | undefined {
  const open = openBefore(tokens, tokens.length - 1);
  if (open === undefined) return undefined;
  const word = previous(tokens, open);
  if (!["by", "without"].includes(tokens[word]?.toLowerCase() ?? "")) return open;
  const close = previous(tokens, word);
  // `sum by (host) offset 1h` has no arguments.
  return tokens[close] === ")" ? openBefore(tokens, close) : undefined;
}

/** The index of the last token before another one that is not a space. */
function previous(tokens: readonly string[], from: number): number {
  return tokens.findLastIndex((token, at) => at < from && token.trim() !== "");
}

function openBefore(tokens: readonly string[], close: number): number | undefined {
  let depth = 0;
  for (let at = close; at >= 0; at--) {
    if (tokens[at] === ")") depth++;
    if (tokens[at] === "(" && --depth === 0) return at;
  }
  return undefined;
}

/** The index behind the bracket that is closed; the length of the tokens without an end. */
function behind(tokens: readonly string[], open: number, pair: "()" | "[]" | "{}"): number {
  let depth = 0;
  for (let at = open; at < tokens.length; at++) {
    if (tokens[at] === pair[0]) depth++;
    if (tokens[at] === pair[1] && --depth === 0) return at + 1;
  }
  return tokens.length;
}

/**
 * The tokens with an offset behind each selector; `undefined` if a part depends on the time of the
 * evaluation, has an offset already, or is a variable.
 */
function withOffset(tokens: readonly string[], offset: string): string | undefined {
  const next = (from: number) => {
    const at = tokens.findIndex((token, at) => at >= from && token.trim() !== "");
    return at < 0 ? tokens.length : at;
  };
  let written = "";
  for (let at = 0; at < tokens.length;) {
    const token = tokens[at] ?? "";
    const word = token.toLowerCase();
    const following = tokens[next(at + 1)] ?? "";
    let end = at + 1;
    if (word === "offset" || word === "@") return undefined;
    // The value of a variable may be a selector, or the end of the name before it.
    if (token.startsWith("$")) return undefined;
    if (token === "[") end = behind(tokens, at, "[]");
    else if (LABEL_LISTS.includes(word)) {
      if (following === "(") end = behind(tokens, next(at + 1), "()");
    } else if (/^[a-z_:]/i.test(token) && following === "(") {
      // `time()` and `hour()` are of the time of the evaluation.
      if (tokens[next(next(at + 1) + 1)] === ")") return undefined;
    } else if (isSelector(token, following)) {
      if (token !== "{" && following === "{") end = next(end);
      if (tokens[token === "{" ? at : end] === "{")
        end = behind(tokens, token === "{" ? at : end, "{}");
      if (tokens[next(end)] === "[") end = behind(tokens, next(end), "[]");
      written += `${tokens.slice(at, end).join("").trimEnd()} offset ${offset}`;
      // An offset that is there already would follow.
      if (["offset", "@"].includes(tokens[next(end)] ?? "")) return undefined;
      at = end;
      continue;
    }
    written += tokens.slice(at, end).join("");
    at = end;
  }
  return written;
}

function isSelector(token: string, following: string): boolean {
  if (token === "{") return true;
  if (!/^[a-z_:]/i.test(token) || WORDS.includes(token.toLowerCase())) return false;
  // `sum by (host) (…)`
  return !["by", "without"].includes(following.toLowerCase());
}
