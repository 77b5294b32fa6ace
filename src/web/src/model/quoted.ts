/** A word of the daemon's lists: double-quoted when it contains a separator. */
export function quoteIfNeeded(text: string, special: RegExp): string {
  const isPlain = !special.test(text) && text === text.trim();
  return isPlain ? text : `"${text.replace(/["\\]/g, "\\$&")}"`;
}

/** A pattern that fits exactly this text. */
export const escapedPattern = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
