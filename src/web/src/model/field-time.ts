/** Values of `datetime-local` fields: clock times without a zone, so callers pass the zone. */
import { instantOf, isoIn } from "./zone";

/** The field's value for an instant: `2026-03-29T01:00`. */
export function fieldValue(zone: string, instant: number): string {
  return isoIn(zone, instant).slice(0, 16);
}

/** The instant of a field's value; `undefined` for an incomplete value. */
export function instantOfValue(zone: string, text: string): number | undefined {
  const match = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)/.exec(text);
  if (!match) return undefined;
  const [year, month, day, hour, minute] = match.slice(1).map(Number);
  return instantOf(zone, year ?? 0, month ?? 1, day ?? 1, hour, minute);
}
