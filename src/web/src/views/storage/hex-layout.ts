/** Which bytes of a document are what, in rows of a hex view. Pure. */
import type { StoredDocumentAnswer, StoredSlot } from "../../api/types";

export type StoredDocument = NonNullable<StoredDocumentAnswer["document"]>;

/** Bytes that mean something: of the header, or a number of a slot's cell. */
export interface Part {
  offset: number;
  length: number;
  name: string;
  value: number | null;
  /** Its slot; -1 of the header. */
  slot: number;
  isEmpty: boolean;
}

/** Bytes of one row that belong together: `part` is undefined for what only holds BSON together. */
export interface Run {
  from: number;
  to: number;
  part: Part | undefined;
}

export interface HexRow {
  offset: number;
  runs: Run[];
}

/** All parts in the order in which they lie. */
export function partsOf(document: StoredDocument): Part[] {
  const header = (document.header ?? []).map((part) => ({ ...part, slot: -1, isEmpty: false }));
  const cells = document.slots.flatMap((slot, index) =>
    slot.columns.map((column) => ({ ...column, slot: index, isEmpty: slot.n === 0 })),
  );
  return [...header, ...cells].sort((a, b) => a.offset - b.offset);
}

/** The bytes cut into rows, and those into runs that do not cross a part's edge. */
export function hexRows(total: number, parts: readonly Part[], bytesPerRow: number): HexRow[] {
  const rows: HexRow[] = [];
  const add = (from: number, to: number, part: Part | undefined) => {
    for (let at = from; at < to;) {
      const place = Math.floor(at / bytesPerRow);
      const end = Math.min(to, (place + 1) * bytesPerRow);
      const row = (rows[place] ??= { offset: place * bytesPerRow, runs: [] });
      row.runs.push({ from: at, to: end, part });
      at = end;
    }
  };
  let at = 0;
  for (const part of parts) {
    // What the daemon says may not lie beyond the bytes, nor over what was said already.
    const from = Math.max(at, part.offset);
    const to = Math.min(total, part.offset + part.length);
    if (to <= from) continue;
    add(at, from, undefined);
    add(from, to, part);
    at = to;
  }
  add(at, total, undefined);
  return rows;
}

/** Bytes of hexadecimal digits; what is none ends them. */
export function bytesOfHex(hex: string): Uint8Array {
  const digits = /^(?:[0-9a-f]{2})*/i.exec(hex)?.[0] ?? "";
  return Uint8Array.from({ length: digits.length / 2 }, (_, k) =>
    Number.parseInt(digits.slice(2 * k, 2 * k + 2), 16),
  );
}

const PAIRS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

export function hexText(bytes: Uint8Array, from: number, to: number): string {
  return Array.from(bytes.subarray(from, to), (byte) => PAIRS[byte] ?? "").join(" ");
}

/** Letters that can be shown; a point for the others. */
export function letters(bytes: Uint8Array, from: number, to: number): string {
  return Array.from(bytes.subarray(from, to), (byte) =>
    byte > 32 && byte < 127 ? String.fromCharCode(byte) : "·",
  ).join("");
}

/** The columns that slots have, in the order in which they lie. */
export function columnsOf(slots: readonly StoredSlot[]): string[] {
  return slots[0]?.columns.map(({ name }) => name) ?? [];
}
