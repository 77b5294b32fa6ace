/** The position of the daemon's error in an expression. */

export interface Complaint {
  /** The message without the position. */
  message: string;
  /** The affected characters; `undefined` when the daemon gives no position. */
  at: { from: number; to: number } | undefined;
}

const POSITION_PATTERN = /(?:^|: )(\d{1,6}):(\d{1,6}): /;
const WORD_PATTERN = /^(?:[\w:.]+|"[^"\n]*"?|.)/u;

/** Reads `2:5: parse error: …`: a line, and a column in bytes, both counted from 1. */
export function complaintOf(error: string, expression: string): Complaint {
  const errorText = error.replace(/^invalid parameter "query": /, "");
  const position = POSITION_PATTERN.exec(errorText);
  const message = (position ? errorText.replace(POSITION_PATTERN, "") : errorText).replace(
    /^parse error: /,
    "",
  );
  if (!position) return { message, at: undefined };
  return { message, at: positionOf(expression, Number(position[1]), Number(position[2])) };
}

function positionOf(expression: string, line: number, column: number): Complaint["at"] {
  const lines = expression.split("\n");
  const text = lines[line - 1];
  if (text === undefined) return undefined;
  const lineStart = lines.slice(0, line - 1).reduce((sum, other) => sum + other.length + 1, 0);
  const columnUnits = unitsOfBytes(text, column - 1);
  const word = WORD_PATTERN.exec(text.slice(columnUnits))?.[0].length ?? 0;
  // An error at the end marks the last character.
  if (word === 0)
    return { from: Math.max(0, lineStart + columnUnits - 1), to: lineStart + columnUnits };
  return { from: lineStart + columnUnits, to: lineStart + columnUnits + word };
}

/** The number of UTF-16 units in the first bytes of a text. */
function unitsOfBytes(text: string, bytes: number): number {
  let bytesSeen = 0;
  let units = 0;
  for (const character of text) {
    if (bytesSeen >= bytes) break;
    bytesSeen += new TextEncoder().encode(character).length;
    units += character.length;
  }
  return units;
}
