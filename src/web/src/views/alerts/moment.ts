/** Times of alerts and silences, in the time zone of charts. */
import { address } from "../../app/address";
import { preferredZone } from "../../app/preferences";
import { clockAt, dateText, isZone, timeText } from "../../model/zone";

/** The valid zone of the address, or else the reader's. */
export function zoneShown(): string {
  const named = address.value.params.get("tz");
  return named !== null && isZone(named) ? named : preferredZone.value;
}

export function momentText(at: number): string {
  const clock = clockAt(zoneShown(), at);
  return `${dateText(clock)} ${timeText(clock)}`;
}
