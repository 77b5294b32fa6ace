/** The position of the daemon's error in an expression. */

export interface Complaint {
  /** The message without the position. */
  message: string;
  /** The affected characters; `undefined` when the daemon gives no position. */
  at: { from: number; to: number } | undefined;
}

const PLACE = /(?:^|: )(\d{1,6}):(\d{1,6}): /;
const WORD = /^(?:[\w:.]+|"[^"\n]*"?|.)/u;

/** Reads `2:5: parse error: …`: a line, and a column in bytes, both counted from 1. */
export function complaintOf(error: string, expression: string): Complaint {
  const plain = error.replace(/^invalid parameter "query": /, "");
  const place = PLACE.exec(plain);
  const message = (place ? plain.replace(PLACE, "") : plain).replace(/^parse error: /, "");
  if (!place) return { message, at: undefined };
  return { message, at: positionOf(expression, Number(place[1]), Number(place[2])) };
}

function positionOf(expression: string, line: number, column: number): Complaint["at"] {
  const lines = expression.split("\n");
  const text = lines[line - 1];
  if (text === undefined) return undefined;
  const before = lines.slice(0, line - 1).reduce((sum, other) => sum + other.length + 1, 0);
  const within = charactersOf(text, column - 1);
  const word = WORD.exec(text.slice(within))?.[0].length ?? 0;
  // An error at the end marks the last character.
  if (word === 0) return { from: Math.max(0, before + within - 1), to: before + within };
  return { from: before + within, to: before + within + word };
}

/** The number of UTF-16 units in the first bytes of a text. */
function charactersOf(text: string, bytes: number): number {
  let seen = 0;
  let units = 0;
  for (const character of text) {
    if (seen >= bytes) break;
    seen += new TextEncoder().encode(character).length;
    units += character.length;
  }
  return units;
}
