/** Characters that turn round or hide what stands beside them; names may have them. */
const REORDERING = /[\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff]/g;

/** A text with such characters written out, so that it reads as what it is. */
export function harmless(text: string): string {
  return text.replace(REORDERING, (own) => `\\u{${(own.codePointAt(0) ?? 0).toString(16)}}`);
}
