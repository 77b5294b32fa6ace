/** A word of the daemon's lists: double-quoted when it contains a separator. */
export function quoteIfNeeded(text: string, special: RegExp): string {
  const isPlain = !special.test(text) && text === text.trim();
  return isPlain ? text : `"${text.replace(/["\\]/g, "\\$&")}"`;
}
