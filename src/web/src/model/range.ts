/** Ranges of time up to now: a count and a unit, such as `6h`, `14d` or `3mo`. Pure. */
import { DAY, HOUR, MINUTE } from "./zone";

/** A range in the form that `parseRange` returns, which the address contains. */
export type Range = string;

type Unit = "m" | "h" | "d" | "w" | "mo" | "y";

/** The lengths of months and years are approximate here; windows follow the calendar. */
const UNITS: Record<Unit, { length: number; one: string; many: string; words: RegExp }> = {
  m: { length: MINUTE, one: "min", many: "min", words: /^(m|min|mins|minutes?)$/ },
  h: { length: HOUR, one: "hr", many: "hr", words: /^(h|hr|hrs|hours?)$/ },
  d: { length: DAY, one: "day", many: "days", words: /^(d|days?)$/ },
  w: { length: 7 * DAY, one: "wk", many: "wks", words: /^(w|wks?|weeks?)$/ },
  mo: { length: 30.4 * DAY, one: "mo", many: "mos", words: /^(mo|mos|months?)$/ },
  y: { length: 12 * 30.4 * DAY, one: "yr", many: "yrs", words: /^(y|yrs?|years?)$/ },
};

function partsOf(range: Range): { count: number; unit: Unit } {
  const [, count = "1", unit = "h"] = /^(\d+)([a-z]+)$/.exec(range) ?? [];
  return { count: Number(count), unit: unit as Unit };
}

/** The range of a text, such as `14d`, `90 min` or `2 weeks`; `undefined` for other texts. */
export function parseRange(text: string): Range | undefined {
  const [, digits, word] = /^\s*(\d{1,5})\s*([a-z]+)\s*$/i.exec(text) ?? [];
  const unit = Object.entries(UNITS).find(([, { words }]) =>
    words.test((word ?? "").toLowerCase()),
  );
  return unit && Number(digits) > 0 ? `${Number(digits)}${unit[0]}` : undefined;
}

/** The length of a range, approximately for months and years. */
export function lengthOf(range: Range): number {
  const { count, unit } = partsOf(range);
  return Math.round(count * UNITS[unit].length);
}

/** The number of months of a range; 0 when it does not consist of months. */
export function monthsOf(range: Range): number {
  const { count, unit } = partsOf(range);
  return unit === "mo" ? count : unit === "y" ? 12 * count : 0;
}

/** `6 hr`, `1 day`, `2 wks` */
export function rangeLabel(range: Range): string {
  const { count, unit } = partsOf(range);
  return `${count} ${count === 1 ? UNITS[unit].one : UNITS[unit].many}`;
}

const LONG_RANGES: readonly Range[] = ["1w", "2w", "1mo", "2mo", "3mo", "6mo", "1y", "2y", "5y"];

/** Longer ranges than `longest` within a retention and `lengthMax`, then the whole retention. */
export function rangesWithin(retention: Range, longest: Range, lengthMax: number): Range[] {
  const end = Math.min(lengthOf(retention), lengthMax);
  const ranges = LONG_RANGES.filter(
    (range) => lengthOf(range) > lengthOf(longest) && lengthOf(range) <= end,
  );
  const last = lengthOf(ranges.at(-1) ?? longest);
  const hasMore = lengthOf(retention) <= lengthMax && lengthOf(retention) > 1.02 * last;
  return hasMore ? [...ranges, retention] : ranges;
}
