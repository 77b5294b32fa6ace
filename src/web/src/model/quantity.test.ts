import { expect, it } from "vitest";
import { quantityOf } from "./quantity";

const comparedUnit = (word: string, perSecond = false) => ({ word, perSecond });
const valueOrFault = (text: string, compared?: { word: string; perSecond: boolean }) => {
  const quantity = quantityOf(text, compared);
  return "value" in quantity ? quantity.value : quantity.fault;
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
  for (const [text, number] of cases) expect(valueOrFault(text), text).toBe(number);
});

it("converts a number to the unit of the compared expression", () => {
  expect(valueOrFault("90%", comparedUnit("percent"))).toBe(90);
  expect(valueOrFault("90%", comparedUnit("ratio"))).toBe(0.9);
  expect(valueOrFault("29%", comparedUnit("ratio"))).toBe(0.29);
  expect(valueOrFault("90%", comparedUnit("seconds", true))).toBe(0.9);
  expect(valueOrFault("250ms", comparedUnit("milliseconds"))).toBe(250);
  expect(valueOrFault("2s", comparedUnit("ms"))).toBe(2000);
  expect(valueOrFault("10MB/s", comparedUnit("bytes", true))).toBe(1e7);
  expect(valueOrFault("10MB", comparedUnit("bytes", true))).toBe(1e7);
  expect(valueOrFault("5k", comparedUnit("packets"))).toBe(5000);
});

it("names the unit that does not fit, and units that do", () => {
  expect(valueOrFault("90%")).toContain("write 90 or 0.9");
  expect(valueOrFault("90%", comparedUnit("bytes"))).toContain("is in bytes, not percent");
  expect(valueOrFault("5GB", comparedUnit("seconds"))).toContain("is in seconds, not bytes");
  expect(valueOrFault("250ms", comparedUnit("percent"))).toContain("is in percent, not a time");
  expect(valueOrFault("10MB/s", comparedUnit("bytes"))).toContain("without /s");
  expect(valueOrFault("5 parsecs")).toContain("“parsecs” is not a known unit");
  for (const text of ["", "high", "1,5", "GB", "5 GB GB", "0x", "Infinity"])
    expect(valueOrFault(text), text).toContain("Enter the threshold as a number");
  for (const word of ["constructor", "toString", "__proto__"])
    for (const perSecond of [false, true])
      expect(valueOrFault("90%", comparedUnit(word, perSecond)), word).toContain(`is in ${word}`);
});
