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
    const [name, behindName] = word(rest, /[=,]/);
    if (!behindName.startsWith("=")) {
      rest = behindName.slice(1);
      continue;
    }
    const [value, behind] = word(behindName.slice(1), /,/);
    if (name !== "") pairs.push([name, value]);
    rest = behind.slice(1);
  }
  return new Map(pairs);
}

const QUOTED = /^\s*"((?:[^"\\]|\\.)*)"?/;

/** The first word of a text, and the rest after its separator. */
function word(text: string, ends: RegExp): [string, string] {
  const [whole = "", inside] = QUOTED.exec(text) ?? [];
  const rest = text.slice(whole.length);
  const at = rest.search(ends);
  const end = at < 0 ? rest.length : at;
  const first = inside === undefined ? rest.slice(0, end).trim() : inside.replace(/\\(.)/g, "$1");
  return [first, rest.slice(end)];
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
