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

const rate = (word: string) => unitOf(word, "avg_per_sec");
const plain = (word: string) => unitOf(word, "avg");

describe("values", () => {
  it.each([
    [0, plain("bytes"), "0 B"],
    [1023, plain("bytes"), "1023 B"],
    [1024, plain("bytes"), "1 KiB"],
    [1.5 * 1024 ** 3, plain("bytes"), "1.5 GiB"],
    [2048, rate("bytes"), "2 KiB/s"],
    [0.012, plain("seconds"), "12 ms"],
    [0.0000015, plain("seconds"), "1.5 µs"],
    [90, plain("seconds"), "1.5 min"],
    [3 * 86_400, plain("seconds"), "3 d"],
    [0.235, rate("seconds"), "23.5 %"],
    [45.678, plain("percent"), "45.68 %"],
    [1234, plain(""), "1.234 k"],
    [1_500_000, rate("packets"), "1.5 M packets/s"],
    [2048, unitOf("bytes", "sum_per_sec"), "2 KiB/s"],
    [12.3456, plain("-"), "12.35"],
    [0.1 + 0.2, plain(""), "0.3"],
    [-1536, plain("bytes"), "−1.5 KiB"],
    [null, plain("bytes"), "–"],
    [undefined, plain(""), "–"],
    [NaN, plain(""), "NaN"],
  ])("%d is written with its unit", (value, unit, text) => {
    expect(valueText(value, unit)).toBe(text);
  });

  it("omit a long unit, which is shown once", () => {
    expect(shortText(1500, rate("switches"))).toBe("1.5 k/s");
    expect(unitText(rate("switches"))).toBe("switches/s");
    expect(unitText(rate("bytes"))).toBe("");
    expect(unitText(plain(""))).toBe("");
  });
});

describe("ticks", () => {
  it("of one axis share a multiple of the unit", () => {
    const ticks = [0, 512 * 1024 ** 2, 1024 ** 3, 1.5 * 1024 ** 3];
    expect(tickTexts(ticks, plain("bytes"))).toEqual(["0", "0.5 GiB", "1.0 GiB", "1.5 GiB"]);
  });

  it("have as many decimals as they need to differ", () => {
    expect(tickTexts([0, 0.25, 0.5], plain(""))).toEqual(["0", "0.25", "0.50"]);
    expect(tickTexts([0, 0.005, 0.01], plain("seconds"))).toEqual(["0", "5 ms", "10 ms"]);
    expect(tickTexts([0, 0.05, 0.1], rate("seconds"))).toEqual(["0", "5 %", "10 %"]);
  });

  it("of a logarithmic axis each have a separate multiple", () => {
    expect(logTickTexts([1, 1000, null, 1e6], plain("packets"))).toEqual(["1", "1 k", "", "1 M"]);
  });

  it("are at round distances in the unit", () => {
    expect(tickSteps(plain("bytes"))).toContain(256 * 1024);
    expect(tickSteps(plain("bytes"))).not.toContain(200_000);
    expect(tickSteps(plain("seconds"))).toContain(15 * 60);
    for (const unit of [plain("bytes"), plain("seconds"), plain(""), rate("seconds")]) {
      const steps = tickSteps(unit);
      expect(steps).toEqual([...steps].sort((a, b) => a - b));
    }
  });
});

describe("the top of an axis", () => {
  it("is 100 percent for values up to it, and more for larger ones", () => {
    expect(topOf(97, plain("percent"))).toBe(100);
    expect(topOf(120, plain("percent"))).toBeGreaterThan(120);
    expect(topOf(0, plain("percent"))).toBe(1);
  });
});
