/** Names of saved objects in addresses: 1 to 64 lower case letters, digits and dashes. */

/** Converts a title to a name for the address; empty when the title has no such letters. */
export function slugOf(title: string): string {
  const plain = title.normalize("NFKD").toLowerCase();
  const slug = plain.replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "");
  return slug.slice(0, 64).replace(/-+$/, "");
}

export const isSlug = (name: string) => /^[a-z0-9-]{1,64}$/.test(name);

export const NO_SLUG = "Use 1 to 64 characters: a-z, 0-9 and -.";

/** The first of `name`, `name-2`, `name-3`, … that is free; an empty name is the fallback. */
export function freeName(name: string, taken: readonly string[], fallback: string): string {
  const base = name || fallback;
  for (let count = 1; ; count++) {
    const end = count === 1 ? "" : `-${count}`;
    const candidate = base.slice(0, 64 - end.length) + end;
    if (!taken.includes(candidate)) return candidate;
  }
}
