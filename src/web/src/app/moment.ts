/** Times of objects, in the time zone of charts. */
import { address } from "./address";
import { preferredZone } from "./preferences";
import { clockAt, dateText, dayText, isZone, timeText } from "../model/zone";

/** The zone of the address if it is valid, or else the reader's. */
export function zoneShown(): string {
  const named = address.value.params.get("tz");
  return named !== null && isZone(named) ? named : preferredZone.value;
}

export function momentText(at: number): string {
  const clock = clockAt(zoneShown(), at);
  return `${dateText(clock)} ${timeText(clock)}`;
}

/** `26 Nov 2026` */
export function dayOfText(at: number): string {
  const clock = clockAt(zoneShown(), at);
  return `${dayText(clock)} ${clock.year}`;
}

/** `26 Nov 2026 14:30:05` */
export function shortMomentText(at: number): string {
  const clock = clockAt(zoneShown(), at);
  return `${dayText(clock)} ${clock.year} ${timeText(clock)}:${String(clock.second).padStart(2, "0")}`;
}
