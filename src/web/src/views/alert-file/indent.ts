/** The indentation of a new line in a YAML text. Pure. */

/** The spaces with which a line after the caret's line begins: its keys align with those above. */
export function indentAfter(text: string, caret: number): string {
  const line = text.slice(text.lastIndexOf("\n", caret - 1) + 1, caret);
  const [, spaces = "", dash = ""] = /^( *)((?:- +)*)/.exec(line) ?? [];
  return spaces + " ".repeat(dash.length);
}
