/** Times of alerts and silences, by the clocks that charts have. */
import { address } from "../../app/address";
import { preferredZone } from "../../app/preferences";
import { clockAt, dateText, isZone, timeText } from "../../model/zone";

/** The zone that the address names, if there is such a one; else the reader's. */
export function zoneShown(): string {
  const named = address.value.params.get("tz");
  return named !== null && isZone(named) ? named : preferredZone.value;
}

export function momentText(at: number): string {
  const clock = clockAt(zoneShown(), at);
  return `${dateText(clock)} ${timeText(clock)}`;
}
