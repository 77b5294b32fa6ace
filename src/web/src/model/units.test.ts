import { describe, expect, it } from "vitest";
import {
  logTickTexts,
  shortText,
  tickSteps,
  tickTexts,
  topOf,
  unitOf,
  unitText,
  valueText,
} from "./units";

const perSecondUnit = (word: string) => unitOf(word, "avg_per_sec");
const plainUnit = (word: string) => unitOf(word, "avg");

describe("values", () => {
  it.each([
    [0, plainUnit("bytes"), "0 B"],
    [1023, plainUnit("bytes"), "1023 B"],
    [1024, plainUnit("bytes"), "1 KiB"],
    [1.5 * 1024 ** 3, plainUnit("bytes"), "1.5 GiB"],
    [2048, perSecondUnit("bytes"), "2 KiB/s"],
    [0.012, plainUnit("seconds"), "12 ms"],
    [0.0000015, plainUnit("seconds"), "1.5 µs"],
    [90, plainUnit("seconds"), "1.5 min"],
    [3 * 86_400, plainUnit("seconds"), "3 d"],
    [0.235, perSecondUnit("seconds"), "23.5 %"],
    [45.678, plainUnit("percent"), "45.68 %"],
    [1234, plainUnit(""), "1.234 k"],
    [1_500_000, perSecondUnit("packets"), "1.5 M packets/s"],
    [2048, unitOf("bytes", "sum_per_sec"), "2 KiB/s"],
    [12.3456, plainUnit("-"), "12.35"],
    [0.1 + 0.2, plainUnit(""), "0.3"],
    [-1536, plainUnit("bytes"), "−1.5 KiB"],
    [null, plainUnit("bytes"), "–"],
    [undefined, plainUnit(""), "–"],
    [NaN, plainUnit(""), "NaN"],
  ])("%d is written with its unit", (value, unit, text) => {
    expect(valueText(value, unit)).toBe(text);
  });

  it("omit a long unit, which is shown once", () => {
    expect(shortText(1500, perSecondUnit("switches"))).toBe("1.5 k/s");
    expect(unitText(perSecondUnit("switches"))).toBe("switches/s");
    expect(unitText(perSecondUnit("bytes"))).toBe("");
    expect(unitText(plainUnit(""))).toBe("");
  });
});

describe("ticks", () => {
  it("of one axis share a multiple of the unit", () => {
    const ticks = [0, 512 * 1024 ** 2, 1024 ** 3, 1.5 * 1024 ** 3];
    expect(tickTexts(ticks, plainUnit("bytes"))).toEqual(["0", "0.5 GiB", "1.0 GiB", "1.5 GiB"]);
  });

  it("have as many decimals as they need to differ", () => {
    expect(tickTexts([0, 0.25, 0.5], plainUnit(""))).toEqual(["0", "0.25", "0.50"]);
    expect(tickTexts([0, 0.005, 0.01], plainUnit("seconds"))).toEqual(["0", "5 ms", "10 ms"]);
    expect(tickTexts([0, 0.05, 0.1], perSecondUnit("seconds"))).toEqual(["0", "5 %", "10 %"]);
  });

  it("of a logarithmic axis each have a separate multiple", () => {
    expect(logTickTexts([1, 1000, null, 1e6], plainUnit("packets"))).toEqual([
      "1",
      "1 k",
      "",
      "1 M",
    ]);
  });

  it("are at round distances in the unit", () => {
    expect(tickSteps(plainUnit("bytes"))).toContain(256 * 1024);
    expect(tickSteps(plainUnit("bytes"))).not.toContain(200_000);
    expect(tickSteps(plainUnit("seconds"))).toContain(15 * 60);
    for (const unit of [
      plainUnit("bytes"),
      plainUnit("seconds"),
      plainUnit(""),
      perSecondUnit("seconds"),
    ]) {
      const steps = tickSteps(unit);
      expect(steps).toEqual([...steps].sort((a, b) => a - b));
    }
  });
});

describe("the top of an axis", () => {
  it("is 100 percent for values up to it, and more for larger ones", () => {
    expect(topOf(97, plainUnit("percent"))).toBe(100);
    expect(topOf(120, plainUnit("percent"))).toBeGreaterThan(120);
    expect(topOf(0, plainUnit("percent"))).toBe(1);
  });
});
