/**
 * The tags that a query asks for, written `name=value,name=value` as the daemon reads them. What
 * holds a comma stands in double quotes, in which `\"` is a quote and `\\` a backslash.
 */

import { quoted } from "../model/quoted";

/** Values by the names of their tags, in the order they were chosen. */
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

/** The word that a text begins with, and what stands behind it from the mark that ends it. */
function word(text: string, ends: RegExp): [string, string] {
  const [whole = "", inside] = QUOTED.exec(text) ?? [];
  const rest = text.slice(whole.length);
  const at = rest.search(ends);
  const end = at < 0 ? rest.length : at;
  const own = inside === undefined ? rest.slice(0, end).trim() : inside.replace(/\\(.)/g, "$1");
  return [own, rest.slice(end)];
}

export function tagsOf(selection: Selection): string {
  return [...selection]
    .map(([name, value]) => `${quoted(name, /[,=]|^"/)}=${quoted(value, /,|^"/)}`)
    .join(",");
}

/** The tags with this value chosen, or no longer where it was. */
export function toggled(tags: string, name: string, value: string): string {
  const selection = new Map(selectionOf(tags));
  if (selection.get(name) === value) selection.delete(name);
  else selection.set(name, value);
  return tagsOf(selection);
}

/** Names between commas, as `group_by` has them. */
export function namesOf(list: string | undefined): string[] {
  const names = (list ?? "").split(",").map((name) => name.trim());
  return names.filter((name) => name !== "");
}
