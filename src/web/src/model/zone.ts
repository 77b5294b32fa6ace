/**
 * Clocks of time zones: conversions between instants and clock times. An instant is Unix
 * milliseconds, a zone an IANA name.
 */

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Offsets are read once per quarter of an hour; the few changes at other times appear late. */
const QUARTER = 15 * MINUTE;

/** A clock time. `month` is 1 to 12. */
export interface Clock {
  year: number;
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
}

const formats = new Map<string, Intl.DateTimeFormat>();
const offsets = new Map<string, Map<number, number>>();
/** The maximum number of remembered offsets of a zone; beyond it, all are forgotten. */
const OFFSETS_MAX = 50_000;

export function isZone(zone: string): boolean {
  try {
    formatOf(zone);
    return true;
  } catch {
    return false;
  }
}

function formatOf(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone);
  if (!format) {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
    formats.set(zone, format);
  }
  return format;
}

/** The zone's offset from UTC in milliseconds. */
export function offsetAt(zone: string, instant: number): number {
  if (zone === "UTC") return 0;
  const offsetsByQuarter = offsets.get(zone) ?? new Map<number, number>();
  if (offsetsByQuarter.size === 0) offsets.set(zone, offsetsByQuarter);
  const quarter = Math.floor(instant / QUARTER);
  let offset = offsetsByQuarter.get(quarter);
  if (offset === undefined) {
    if (offsetsByQuarter.size >= OFFSETS_MAX) offsetsByQuarter.clear();
    offset = readOffset(zone, quarter * QUARTER);
    offsetsByQuarter.set(quarter, offset);
  }
  return offset;
}

function readOffset(zone: string, instant: number): number {
  const part: Record<string, number> = {};
  for (const { type, value } of formatOf(zone).formatToParts(instant)) part[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part;
  return Date.UTC(year, month - 1, day, hour, minute, second) - instant;
}

/** The zone's clock time. */
export function clockAt(zone: string, instant: number): Clock {
  const shifted = new Date(instant + offsetAt(zone, instant));
  return {
    year: shifted.getUTCFullYear(),
    month: shifted.getUTCMonth() + 1,
    day: shifted.getUTCDate(),
    hour: shifted.getUTCHours(),
    minute: shifted.getUTCMinutes(),
    second: shifted.getUTCSeconds(),
  };
}

/**
 * The instant of a clock time: the first one of a repeated time; a skipped time is moved forward by
 * the change. Months and days may be out of bounds: day 32 belongs to the next month.
 */
export function instantOf(
  zone: string,
  year: number,
  month: number,
  day: number,
  hour = 0,
  minute = 0,
) {
  const clockMillis = Date.UTC(year, month - 1, day, hour, minute);
  const withEarlierOffset = clockMillis - offsetAt(zone, clockMillis - DAY);
  const withLaterOffset = clockMillis - offsetAt(zone, clockMillis + DAY);
  const isValidEarlier = withEarlierOffset + offsetAt(zone, withEarlierOffset) === clockMillis;
  const isValidLater = withLaterOffset + offsetAt(zone, withLaterOffset) === clockMillis;
  return isValidLater && !isValidEarlier ? withLaterOffset : withEarlierOffset;
}

/** The start of the local day of an instant, or of the day `daysLater` days after it. */
export function startOfDay(zone: string, instant: number, daysLater = 0): number {
  const { year, month, day } = clockAt(zone, instant);
  return instantOf(zone, year, month, day + daysLater);
}

/** The instant with its clock time, months later; in a shorter month, on the last day. */
export function addMonths(zone: string, instant: number, months: number): number {
  const { year, month, day, hour, minute } = clockAt(zone, instant);
  const daysOfMonth = new Date(Date.UTC(year, month + months, 0)).getUTCDate();
  return instantOf(zone, year, month + months, Math.min(day, daysOfMonth), hour, minute);
}

const twoDigits = (number: number) => String(number).padStart(2, "0");

/** `+01:00` */
export function offsetText(zone: string, instant: number): string {
  const minutes = Math.round(offsetAt(zone, instant) / MINUTE);
  const minutesAbs = Math.abs(minutes);
  return `${minutes < 0 ? "-" : "+"}${twoDigits(Math.floor(minutesAbs / 60))}:${twoDigits(minutesAbs % 60)}`;
}

/** `2026-03-29T01:00:00+01:00`: unambiguous, for machines. */
export function isoIn(zone: string, instant: number): string {
  const clock = clockAt(zone, instant);
  const date = `${String(clock.year).padStart(4, "0")}-${twoDigits(clock.month)}-${twoDigits(clock.day)}`;
  const offset = zone === "UTC" ? "Z" : offsetText(zone, instant);
  return `${date}T${twoDigits(clock.hour)}:${twoDigits(clock.minute)}:${twoDigits(clock.second)}${offset}`;
}

export const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
const WEEKDAYS = "Sun Mon Tue Wed Thu Fri Sat".split(" ");

/** `04:05` */
export function timeText(clock: Clock): string {
  return `${twoDigits(clock.hour)}:${twoDigits(clock.minute)}`;
}

/** `29 Mar` */
export function dayText(clock: Clock): string {
  return `${clock.day} ${MONTHS[clock.month - 1] ?? ""}`;
}

/** `Sun 29 Mar 2026` */
export function dateText(clock: Clock): string {
  const weekday = new Date(Date.UTC(clock.year, clock.month - 1, clock.day)).getUTCDay();
  return `${WEEKDAYS[weekday] ?? ""} ${dayText(clock)} ${clock.year}`;
}

const nameFormats = new Map<string, Intl.DateTimeFormat>();

/** The zone's usual name at that time: `CET`, `GMT-3:30`. */
export function zoneName(zone: string, instant: number): string {
  let format = nameFormats.get(zone);
  if (!format) {
    format = new Intl.DateTimeFormat("en-GB", { timeZone: zone, timeZoneName: "short" });
    nameFormats.set(zone, format);
  }
  const part = format.formatToParts(instant).find(({ type }) => type === "timeZoneName");
  return part?.value ?? zone;
}
