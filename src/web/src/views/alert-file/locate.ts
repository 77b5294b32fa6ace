/** The lines of a text that a fault or a rule is about. Pure. */
import type { TextFault } from "../../api/types";

const INDENT = /^ */;
const BLANK = /^\s*(#.*)?$/;
/** The location of a fault in a receiver, in the daemon's words: `receiver "duty", webhook/0`. */
const LOCATION = /^receiver ("(?:[^"\\]|\\.)*")/;

/**
 * The line of a fault, from 1: the daemon's, or the line of the named receiver; `undefined` when
 * the fault concerns the whole text, or the receiver is not found.
 */
export function lineOfFault(text: string, { line, location }: TextFault): number | undefined {
  if (line !== null) return line;
  const name = LOCATION.exec(location)?.[1];
  const named = name === undefined ? undefined : lineNamed(text.split("\n"), unquoted(name));
  return named === undefined ? undefined : named + 1;
}

/** The line of a rule, from 1; without the rule, the line of its group. */
export function lineOfRule(text: string, group: string, rule: string): number | undefined {
  const lines = text.split("\n");
  // The rules of an objective are in a group of this name.
  const named = lineNamed(lines, group.replace(/^slo:/, ""));
  if (named === undefined) return undefined;
  const isRule = (line: string) => {
    const [, , value] = /^\s*(-\s+)?(?:alert|record):\s*(.+)$/.exec(line) ?? [];
    return value !== undefined && unquoted(value) === rule;
  };
  const found = lines.slice(named + 1, endOfGroup(lines, named)).findIndex(isRule);
  return found < 0 ? named + 1 : named + 1 + found + 1;
}

/** The index of the first line with `name: NAME`. */
function lineNamed(lines: readonly string[], name: string): number | undefined {
  const found = lines.findIndex((line) => {
    const value = /^\s*(?:-\s+)?name:\s*(.+)$/.exec(line)?.[1];
    return value !== undefined && unquoted(value) === name;
  });
  return found < 0 ? undefined : found;
}

/** The index after the last line of the group whose name is in a line. */
function endOfGroup(lines: readonly string[], named: number): number {
  // Keys of the group are behind its dash, which may be on the line of the name.
  const column = columnOfKey(lines[named] ?? "");
  const end = lines.findIndex(
    (line, k) => k > named && !BLANK.test(line) && indentOf(line) < column && !isItem(line, column),
  );
  return end < 0 ? lines.length : end;
}

/** Returns true for an item of the group's rules that is indented less than the group's keys. */
function isItem(line: string, column: number): boolean {
  return /^ *- +(alert|record|expr):/.test(line) && indentOf(line) >= column - 2;
}

function indentOf(line: string): number {
  return INDENT.exec(line)?.[0].length ?? 0;
}

/** The column of a line's key, behind the dash of an item. */
function columnOfKey(line: string): number {
  return /^ *(?:- +)?/.exec(line)?.[0].length ?? 0;
}

/** The value of a scalar, without quotes and a comment. */
function unquoted(value: string): string {
  const text = value.trim();
  const double = /^"(?:[^"\\]|\\.)*"/.exec(text)?.[0];
  if (double !== undefined) return parsed(double);
  const single = /^'((?:[^']|'')*)'/.exec(text)?.[1];
  if (single !== undefined) return single.replaceAll("''", "'");
  return text.replace(/\s+#.*$/, "");
}

/** A text in double quotes, whose escapes are mostly those of JSON. */
function parsed(quoted: string): string {
  try {
    return String(JSON.parse(quoted));
  } catch {
    return quoted.slice(1, -1);
  }
}
