/** A word as the daemon reads it in lists: in double quotes where it holds what would end it. */
export function quoted(text: string, special: RegExp): string {
  const isPlain = !special.test(text) && text === text.trim();
  return isPlain ? text : `"${text.replace(/["\\]/g, "\\$&")}"`;
}
