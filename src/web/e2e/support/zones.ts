/** Changes of clocks, from Node's time zone data: the tests hold in every season. */

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Zones whose clocks change by an hour, by an hour at a half-hour offset, and by half an hour. */
export const ZONES = ["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe"] as const;

/** Returns the zone's offset from UTC in milliseconds. */
export function offset(zone: string, at: number): number {
  const format = new Intl.DateTimeFormat("en-US", { timeZone: zone, timeZoneName: "longOffset" });
  const name = format.formatToParts(at).find((part) => part.type === "timeZoneName")?.value ?? "";
  const [, sign, hours, minutes] = /GMT(?:([+-])(\d\d):(\d\d))?/.exec(name) ?? [];
  const distance = Number(hours ?? 0) * HOUR + Number(minutes ?? 0) * MINUTE;
  return sign === "-" ? -distance : distance;
}

/** Returns the zone's latest change of clocks that is at least `daysAgo` days old. */
export function lastChange(zone: string, daysAgo: number): number {
  const latest = Math.floor(Date.now() / HOUR) * HOUR - daysAgo * DAY;
  for (let at = latest; at > latest - 400 * DAY; at -= HOUR / 2) {
    if (offset(zone, at) !== offset(zone, at - 1)) return at;
  }
  throw new Error(`the clocks of ${zone} did not change within 400 days`);
}

/** Returns the start of the zone's day that contains a time. */
export function startOfDay(zone: string, at: number): number {
  const local = at + offset(zone, at);
  const midnight = local - (((local % DAY) + DAY) % DAY);
  const firstGuess = midnight - offset(zone, at);
  return midnight - offset(zone, firstGuess);
}
