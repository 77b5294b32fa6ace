/** Short texts for instants and time ranges, by the clock of a zone. */
import { DAY, clockAt, dayText, timeText, type Clock } from "../../model/zone";

/** A range of at least this length is written in days. */
const LONG = 20 * DAY;

/** `22 Nov 04:05`, with the year unless it is the current year. */
export function whenText(zone: string, at: number, now: number): string {
  const clock = clockAt(zone, at);
  return `${dateOf(clock, clockAt(zone, now))} ${timeText(clock)}`;
}

function dateOf(clock: Clock, now: Clock): string {
  return clock.year === now.year ? dayText(clock) : `${dayText(clock)} ${clock.year}`;
}

/** `22 Nov 00:00 – 06:00`, `21 Nov 23:00 – 22 Nov 05:00`, `1 Jan 2026 – 1 Jan 2027`. */
export function spanText(zone: string, start: number, end: number, now: number): string {
  const [from, to, today] = [clockAt(zone, start), clockAt(zone, end), clockAt(zone, now)];
  if (end - start >= LONG) {
    return `${dayText(from)} ${from.year} – ${dayText(to)} ${to.year}`;
  }
  const isOneDay = dayText(from) === dayText(to) && from.year === to.year;
  const first = `${dateOf(from, today)} ${timeText(from)}`;
  return isOneDay
    ? `${first} – ${timeText(to)}`
    : `${first} – ${dateOf(to, today)} ${timeText(to)}`;
}
