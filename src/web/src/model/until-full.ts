/** The time until a resource runs out, as texts. Pure. */
import { countWithNoun } from "./words";
import { DAY, HOUR, MINUTE } from "./zone";

/** A forecast of the time until a file system is full, or memory exhausted; in milliseconds. */
export interface UntilFull {
  host: string;
  /** The mount point; `undefined` for memory. */
  mount: string | undefined;
  /** The time that is too long with a probability of 10 %; `undefined` without a forecast. */
  early: number | undefined;
  median: number;
  /** The time that is long enough with a probability of 90 %; `undefined` without a forecast. */
  late: number | undefined;
}

/** A resource that is full within this time, with a probability of 90 %, needs attention. */
const SOON_MS = 7 * DAY;
interface Unit {
  length: number;
  noun: string;
  symbol: string;
}
const MINUTES: Unit = { length: MINUTE, noun: "minute", symbol: "min" };
/** The units, longest first. */
const UNITS: readonly Unit[] = [
  { length: DAY, noun: "day", symbol: "d" },
  { length: HOUR, noun: "hour", symbol: "h" },
  MINUTES,
];

/** The longest unit that fits twice into a time. */
const unitOf = (time: number) => UNITS.find(({ length }) => time >= 2 * length) ?? MINUTES;

/** Returns true if a resource needs attention, as the shipped rule FilesystemFullInAWeek says. */
export function isFullSoon({ late }: UntilFull): boolean {
  return late !== undefined && late < SOON_MS;
}

/** `/data full in 9 days (7 to 14)` */
export function untilFullText(until: UntilFull): string {
  const what = until.mount === undefined ? "Memory exhausted" : `${until.mount} full`;
  return `${what} in ${timeText(until)}`;
}

function timeText({ early, median, late }: UntilFull): string {
  const { length, noun } = unitOf(median);
  const rounded = (time: number) => Math.round(time / length);
  const middle = rounded(median);
  const text = countWithNoun(middle, noun);
  if (early === undefined) return text;
  if (late === undefined) return `${text} (${rounded(early).toLocaleString("en")} or more)`;
  const [from, to] = [rounded(early), rounded(late)];
  if (from === to) return text;
  return `${text} (${from.toLocaleString("en")} to ${to.toLocaleString("en")})`;
}

/** `9 d`, for a cell. */
export function shortUntilFull({ median }: UntilFull): string {
  const { length, symbol } = unitOf(median);
  return `${Math.round(median / length)} ${symbol}`;
}
