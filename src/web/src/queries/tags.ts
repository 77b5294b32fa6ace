/**
 * The tag filter of a query, written `name=value,name=value` as the daemon reads it. A value with a
 * comma is double-quoted; inside, `\"` is a quote and `\\` a backslash.
 */

import { quoteIfNeeded } from "../model/quoted";

/** Values by tag name, in the order of choice. */
export type Selection = ReadonlyMap<string, string>;

export function selectionOf(tags: string): Selection {
  const pairs: [string, string][] = [];
  let rest = tags;
  while (rest !== "") {
    const [name, afterName] = takeWord(rest, /[=,]/);
    if (!afterName.startsWith("=")) {
      rest = afterName.slice(1);
      continue;
    }
    const [value, afterValue] = takeWord(afterName.slice(1), /,/);
    if (name !== "") pairs.push([name, value]);
    rest = afterValue.slice(1);
  }
  return new Map(pairs);
}

const QUOTED_PATTERN = /^\s*"((?:[^"\\]|\\.)*)"?/;

/** The first word of a text, and the rest after its separator. */
function takeWord(text: string, separators: RegExp): [string, string] {
  const [quotedPart = "", quotedText] = QUOTED_PATTERN.exec(text) ?? [];
  const rest = text.slice(quotedPart.length);
  const separatorIndex = rest.search(separators);
  const end = separatorIndex < 0 ? rest.length : separatorIndex;
  const word =
    quotedText === undefined ? rest.slice(0, end).trim() : quotedText.replace(/\\(.)/g, "$1");
  return [word, rest.slice(end)];
}

export function tagsOf(selection: Selection): string {
  return [...selection]
    .map(([name, value]) => `${quoteIfNeeded(name, /[,=]|^"/)}=${quoteIfNeeded(value, /,|^"/)}`)
    .join(",");
}

/** The filter with this value chosen, or removed if it was chosen. */
export function toggleTag(tags: string, name: string, value: string): string {
  const selection = new Map(selectionOf(tags));
  if (selection.get(name) === value) selection.delete(name);
  else selection.set(name, value);
  return tagsOf(selection);
}

/** Reads names separated by commas, the format of `group_by`. */
export function namesOf(list: string | undefined): string[] {
  const names = (list ?? "").split(",").map((name) => name.trim());
  return names.filter((name) => name !== "");
}
