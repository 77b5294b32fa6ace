/** Control characters that reorder or hide text; names may contain them. */
const REORDERING = /[\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff]/g;

/** Returns the text with these control characters escaped, so that readers see them. */
export function escapeReordering(text: string): string {
  return text.replace(
    REORDERING,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}
