import { expect, it } from "vitest";
import { quantityOf } from "./quantity";

const unit = (word: string, perSecond = false) => ({ word, perSecond });
const value = (text: string, compared?: { word: string; perSecond: boolean }) => {
  const found = quantityOf(text, compared);
  return "value" in found ? found.value : found.fault;
};

it("reads numbers with and without a unit", () => {
  const cases: [string, number][] = [
    ["5", 5],
    [" 0.9 ", 0.9],
    ["-3e2", -300],
    ["5GB", 5e9],
    ["5 GB", 5e9],
    ["1.5GiB", 1.5 * 2 ** 30],
    ["512KiB", 512 * 1024],
    ["10kB", 10_000],
    ["10KB", 10_000],
    ["250ms", 0.25],
    ["3us", 3e-6],
    ["2h", 7200],
    ["5m", 300],
    ["90s", 90],
    ["2k", 2000],
    ["3M", 3e6],
  ];
  for (const [text, number] of cases) expect(value(text), text).toBe(number);
});

it("converts a number to the unit of the compared expression", () => {
  expect(value("90%", unit("percent"))).toBe(90);
  expect(value("90%", unit("ratio"))).toBe(0.9);
  expect(value("29%", unit("ratio"))).toBe(0.29);
  expect(value("90%", unit("seconds", true))).toBe(0.9);
  expect(value("250ms", unit("milliseconds"))).toBe(250);
  expect(value("2s", unit("ms"))).toBe(2000);
  expect(value("10MB/s", unit("bytes", true))).toBe(1e7);
  expect(value("10MB", unit("bytes", true))).toBe(1e7);
  expect(value("5k", unit("packets"))).toBe(5000);
});

it("names the unit that does not fit, and units that do", () => {
  expect(value("90%")).toContain("write 90 or 0.9");
  expect(value("90%", unit("bytes"))).toContain("is in bytes, not percent");
  expect(value("5GB", unit("seconds"))).toContain("is in seconds, not bytes");
  expect(value("250ms", unit("percent"))).toContain("is in percent, not a time");
  expect(value("10MB/s", unit("bytes"))).toContain("without /s");
  expect(value("5 parsecs")).toContain("“parsecs” is not a known unit");
  for (const text of ["", "high", "1,5", "GB", "5 GB GB", "0x", "Infinity"])
    expect(value(text), text).toContain("Enter the threshold as a number");
  for (const word of ["constructor", "toString", "__proto__"])
    for (const perSecond of [false, true])
      expect(value("90%", unit(word, perSecond)), word).toContain(`is in ${word}`);
});
