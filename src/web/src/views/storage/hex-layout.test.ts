import { describe, expect, it } from "vitest";
import { bytesOfHex, hexRows, hexText, letters, partsOf, type Part } from "./hex-layout";

const part = (offset: number, length: number, name = "n"): Part => ({
  offset,
  length,
  name,
  value: 0,
  slot: 0,
  isEmpty: false,
});

function runs(total: number, parts: Part[], perRow = 8) {
  return hexRows(total, parts, perRow).map(({ offset, runs }) => ({
    offset,
    runs: runs.map(({ from, to, part }) => `${from}-${to}${part ? ` ${part.name}` : ""}`),
  }));
}

describe("rows of bytes", () => {
  it("divide parts at the ends of rows and label the bytes between them", () => {
    expect(runs(20, [part(4, 8, "sum"), part(12, 4, "n")])).toEqual([
      { offset: 0, runs: ["0-4", "4-8 sum"] },
      { offset: 8, runs: ["8-12 sum", "12-16 n"] },
      { offset: 16, runs: ["16-20"] },
    ]);
  });

  it("contain each byte once, whatever the layout claims", () => {
    const odd = [part(2, 6), part(4, 2), part(5, 9), part(30, 90), part(200, 4)];
    const places = hexRows(40, odd, 8).flatMap(({ runs }) =>
      runs.flatMap(({ from, to }) => Array.from({ length: to - from }, (_, k) => from + k)),
    );
    expect(places).toEqual(Array.from({ length: 40 }, (_, k) => k));
  });

  it("are absent without bytes", () => {
    expect(hexRows(0, [part(0, 4)], 16)).toEqual([]);
  });
});

it("sorts header and cells by offset", () => {
  const column = (name: string, offset: number) => ({ name, offset, length: 4, value: 1 });
  const document = {
    start: 0,
    end: 1,
    bytes_hex: "",
    nested: {},
    header: [column("v", 7), column("checksum", 40)],
    slots: [
      { start: 0, n: 1, offset: 20, length: 8, columns: [column("n", 20), column("sum", 28)] },
      { start: 1, n: 0, offset: 24, length: 8, columns: [column("n", 24), column("sum", 36)] },
    ],
  };
  expect(partsOf(document).map(({ name, slot, isEmpty }) => [name, slot, isEmpty])).toEqual([
    ["v", -1, false],
    ["n", 0, false],
    ["n", 1, true],
    ["sum", 0, false],
    ["sum", 1, true],
    ["checksum", -1, false],
  ]);
});

describe("bytes", () => {
  it("are read up to the first invalid digit", () => {
    expect([...bytesOfHex("00ffA1")]).toEqual([0, 255, 161]);
    expect([...bytesOfHex("0102x3")]).toEqual([1, 2]);
    expect([...bytesOfHex("012")]).toEqual([1]);
  });

  it("are written as pairs and as letters", () => {
    const bytes = bytesOfHex("0a76207f");
    expect(hexText(bytes, 0, 4)).toBe("0a 76 20 7f");
    expect(letters(bytes, 0, 4)).toBe("·v··");
  });
});
