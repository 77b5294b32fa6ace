/** Numbers in readable units: bytes, seconds, percent or thousands. */

/** The unit of a number. */
export interface Unit {
  /** The API's word, such as `bytes`; any text. */
  word: string;
  /** True if the number is per second. */
  perSecond: boolean;
}

interface Scale {
  /** The factor of a number before it is written. */
  factor: number;
  suffix: string;
}

export const NONE: readonly string[] = ["", "-", "none", "1", "count"];
const BYTES: readonly string[] = ["bytes", "byte", "B", "By"];
const SECONDS: readonly string[] = ["seconds", "second", "s"];
const PERCENT: readonly string[] = ["percent", "%"];

const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const DECIMAL = ["", "k", "M", "G", "T", "P", "E"];
/** The seconds of each unit, from the largest. */
const TIMES: [number, string][] = [
  [86_400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
  [1e-3, "ms"],
  [1e-6, "µs"],
  [1e-9, "ns"],
];

/** The unit of a series, from the API's word and the shown number. */
export function unitOf(word: string, display: string): Unit {
  return { word, perSecond: display === "avg_per_sec" || display === "sum_per_sec" };
}

/** Seconds per second: a share of the time, shown as percent. */
function isShare(unit: Unit): boolean {
  return (unit.perSecond && SECONDS.includes(unit.word)) || unit.word === "ratio";
}

function power(size: number, base: number, powers: number): number {
  if (size < base || !Number.isFinite(size)) return 0;
  // The logarithm may be slightly off at exact powers.
  const guess = Math.floor(Math.log(size) / Math.log(base) + 1e-9);
  return Math.min(guess, powers - 1);
}

/** The multiple of the unit for a number of this size. */
function scaleFor(unit: Unit, size: number): Scale {
  const per = unit.perSecond ? "/s" : "";
  if (isShare(unit)) return { factor: 100, suffix: " %" };
  if (PERCENT.includes(unit.word)) return { factor: 1, suffix: " %" + per };
  if (BYTES.includes(unit.word)) {
    const k = power(size, 1024, BINARY.length);
    return { factor: 1024 ** -k, suffix: ` ${BINARY[k] ?? "B"}${per}` };
  }
  if (SECONDS.includes(unit.word)) {
    const [seconds, name] =
      TIMES.find(([from]) => size >= from) ?? (size > 0 ? [1e-9, "ns"] : [1, "s"]);
    return { factor: 1 / seconds, suffix: ` ${name}` };
  }
  const k = power(size, 1000, DECIMAL.length);
  const name = DECIMAL[k] ?? "";
  const word = NONE.includes(unit.word) ? "" : ` ${unit.word}`;
  return { factor: 1000 ** -k, suffix: (name ? ` ${name}` : "") + word + per };
}

/** A number with four significant digits: `1.234 MiB/s`, `0 B`, `12.50 %`. */
export function valueText(value: number | null | undefined, unit: Unit): string {
  if (value === null || value === undefined) return "–";
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "−∞";
  const { factor, suffix } = scaleFor(unit, Math.abs(value));
  return digits(value * factor) + suffix;
}

function digits(number: number): string {
  const size = Math.abs(number);
  if (size === 0) return "0";
  if (size >= 1e7 || size < 1e-4) return number.toExponential(2).replace("-", "−");
  const whole = Math.max(Math.floor(Math.log10(size)) + 1, 1);
  const text = number.toFixed(Math.max(4 - whole, 0));
  if (size < 1) return minus(String(Number(number.toPrecision(3))));
  return minus(text.includes(".") ? text.replace(/\.?0+$/, "") : text);
}

const minus = (text: string) => text.replace(/^-/, "−");

/** Labels of an axis: all in the same multiple, with the decimals that their distance needs. */
export function tickTexts(ticks: readonly (number | null)[], unit: Unit): string[] {
  const numbers = ticks.filter((tick) => tick !== null);
  const size = numbers.reduce((most, tick) => Math.max(most, Math.abs(tick)), 0);
  const { factor, suffix } = scaleFor({ ...unit, word: shortWord(unit) }, size);
  const distance = numbers.slice(1).reduce((least, tick, k) => {
    const gap = Math.abs(tick - (numbers[k] ?? tick)) * factor;
    return gap > 0 ? Math.min(least, gap) : least;
  }, Infinity);
  const decimals = Number.isFinite(distance) ? decimalsFor(distance) : 0;
  return ticks.map((tick) =>
    tick === null ? "" : tick === 0 ? "0" : minus((tick * factor).toFixed(decimals)) + suffix,
  );
}

/** A number next to others of its unit: a long unit is shown once, elsewhere. */
export function shortText(value: number | null | undefined, unit: Unit): string {
  return valueText(value, { ...unit, word: shortWord(unit) });
}

/** The unit, if numbers do not include it: `packets/s`. */
export function unitText(unit: Unit): string {
  const isIncluded = shortWord(unit) === unit.word || NONE.includes(unit.word);
  return isIncluded ? "" : unit.word + (unit.perSecond ? "/s" : "");
}

/** Labels of a logarithmic axis, each in a separate multiple. */
export function logTickTexts(ticks: readonly (number | null)[], unit: Unit): string[] {
  const short = { ...unit, word: shortWord(unit) };
  return ticks.map((tick) => (tick === null ? "" : valueText(tick, short)));
}

/** An axis has no room for a long unit: the legend shows it. */
function shortWord(unit: Unit): string {
  const isKnown = [BYTES, SECONDS, PERCENT, ["ratio"]].some((words) => words.includes(unit.word));
  return isKnown ? unit.word : "";
}

function decimalsFor(distance: number): number {
  for (let decimals = 0; decimals < 8; decimals++) {
    const shifted = distance * 10 ** decimals;
    if (Math.abs(shifted - Math.round(shifted)) < 1e-6 * Math.max(shifted, 1) && shifted >= 0.999) {
      return decimals;
    }
  }
  return 8;
}

/** Round distances between ticks of this unit. */
export function tickSteps(unit: Unit): number[] {
  const decimal: number[] = [];
  for (let k = -9; k <= 18; k++) for (const n of [1, 2, 5]) decimal.push(Number(`${n}e${k}`));
  if (isShare(unit)) return decimal;
  if (BYTES.includes(unit.word)) {
    const small = decimal.filter((step) => step < 1);
    return small.concat(Array.from({ length: 63 }, (_, k) => 2 ** k));
  }
  if (SECONDS.includes(unit.word)) {
    const minutes = [1, 2, 5, 10, 15, 30].flatMap((n) => [n, n * 60]);
    const longer = [1, 2, 3, 6, 12]
      .map((n) => n * 3600)
      .concat([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000].map((n) => n * 86_400));
    return [...decimal.filter((step) => step < 1), ...minutes, ...longer].sort((a, b) => a - b);
  }
  return decimal;
}

/** The end of an axis for these numbers; percent stops at 100 if possible. */
export function topOf(most: number, unit: Unit): number {
  if (!(most > 0)) return 1;
  const full = isShare(unit) ? 1 : 100;
  const isPercent = PERCENT.includes(unit.word) && !unit.perSecond;
  if (isPercent && most <= full && most * 1.08 > full) return full;
  return most * 1.08;
}
