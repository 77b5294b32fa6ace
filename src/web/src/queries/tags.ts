/**
 * The tags that a query asks for, written `name=value,name=value` as the daemon reads them.
 * A value that holds a comma cannot be asked for in this form.
 */

/** Values by the names of their tags, in the order they were chosen. */
export type Selection = ReadonlyMap<string, string>;

export function selectionOf(tags: string): Selection {
  const pairs = tags.split(",").flatMap((pair): [string, string][] => {
    const at = pair.indexOf("=");
    return at < 1 ? [] : [[pair.slice(0, at).trim(), pair.slice(at + 1).trim()]];
  });
  return new Map(pairs);
}

export function tagsOf(selection: Selection): string {
  return [...selection].map(([name, value]) => `${name}=${value}`).join(",");
}

/** Whether the daemon would read this pair as it is meant. */
export function canBeAskedFor(name: string, value: string): boolean {
  const isPlain = (text: string) => text === text.trim() && !text.includes(",");
  return isPlain(name) && isPlain(value) && !name.includes("=");
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
