/** Instants as people type them. Pure: time and zone are arguments. */
import { lengthOf, parseRange } from "./range";
import { clockAt, instantOf, isoIn } from "./zone";

/** An example for error messages and fields. */
export const MOMENT_EXAMPLE = "2026-11-20 14:30";

/** `2026-11-20 14:30`: an instant as `parseMoment` reads it. */
export function momentFieldText(zone: string, instant: number): string {
  return isoIn(zone, instant).slice(0, 16).replace("T", " ");
}

/**
 * The instant of a text: a date with or without a time in the zone, a time of today, RFC 3339, Unix
 * seconds or milliseconds, `now`, or a range before now such as `-6h`; `undefined` for other texts.
 */
export function parseMoment(text: string, zone: string, now: number): number | undefined {
  const trimmed = text.trim();
  if (trimmed.toLowerCase() === "now") return now;
  if (/^\d{9,10}$/.test(trimmed)) return Number(trimmed) * 1000;
  if (/^\d{11,14}$/.test(trimmed)) return Number(trimmed);
  const before = /^(?:now)?\s*-(.+)$/i.exec(trimmed)?.[1];
  const range = before === undefined ? undefined : parseRange(before);
  if (range !== undefined) return now - lengthOf(range);
  if (/^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:\d\d)$/i.test(trimmed)) {
    const instant = Date.parse(trimmed);
    return Number.isNaN(instant) ? undefined : instant;
  }
  return clockInstant(trimmed, zone, now);
}

/** The instant of a date, a date with a time, or a time of today. */
function clockInstant(text: string, zone: string, now: number): number | undefined {
  const match = /^(?:(\d{4})-(\d\d?)-(\d\d?))?(?:[T\s]*(\d\d?):(\d\d)(?::(\d\d))?)?$/.exec(text);
  if (!match || text === "") return undefined;
  const numbers = match
    .slice(1)
    .map((part: string | undefined) => (part === undefined ? undefined : Number(part)));
  const today = clockAt(zone, now);
  const [year = today.year, month = today.month, day = today.day] = numbers;
  const [hour = 0, minute = 0, second = 0] = numbers.slice(3);
  const isDate = new Date(Date.UTC(year, month - 1, day)).getUTCMonth() === month - 1 && day > 0;
  if (!isDate || hour > 23 || minute > 59 || second > 59) return undefined;
  return instantOf(zone, year, month, day, hour, minute) + second * 1000;
}
