/** The meaning of each byte of a document, arranged in rows of a hex view. Pure. */
import type { StoredDocumentAnswer, StoredSlot } from "../../api/types";

export type StoredDocument = NonNullable<StoredDocumentAnswer["document"]>;

/** Bytes with a meaning: a field of the header, or a number of a slot's cell. */
export interface Part {
  offset: number;
  length: number;
  name: string;
  value: number | null;
  /** The slot; -1 for the header. */
  slot: number;
  isEmpty: boolean;
}

/** Consecutive bytes of a part within a row; `part` is undefined for bytes of BSON's structure. */
export interface Run {
  from: number;
  to: number;
  part: Part | undefined;
}

export interface HexRow {
  offset: number;
  runs: Run[];
}

/** All parts, sorted by offset. */
export function partsOf(document: StoredDocument): Part[] {
  const header = (document.header ?? []).map((part) => ({ ...part, slot: -1, isEmpty: false }));
  const cells = document.slots.flatMap((slot, index) =>
    slot.columns.map((column) => ({ ...column, slot: index, isEmpty: slot.n === 0 })),
  );
  return [...header, ...cells].sort((a, b) => a.offset - b.offset);
}

/** Divides the bytes into rows, and each row into runs within one part. */
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
    // A part of the answer may neither exceed the bytes nor overlap an earlier part.
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

/** The bytes of hexadecimal digits, up to the first invalid digit. */
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

/** Printable characters; a point for all others. */
export function letters(bytes: Uint8Array, from: number, to: number): string {
  return Array.from(bytes.subarray(from, to), (byte) =>
    byte > 32 && byte < 127 ? String.fromCharCode(byte) : "·",
  ).join("");
}

/** The columns of slots, sorted by offset. */
export function columnsOf(slots: readonly StoredSlot[]): string[] {
  return slots[0]?.columns.map(({ name }) => name) ?? [];
}
