/** The filter of the audit: its parameters in the address, and in requests. Pure. */
import { instantOfValue } from "../../model/field-time";
import { DAY, HOUR } from "../../model/zone";

export const RANGES = [
  { value: "", label: "All" },
  { value: "1h", label: "Last hour", ms: HOUR },
  { value: "24h", label: "Last 24 hours", ms: DAY },
  { value: "7d", label: "Last 7 days", ms: 7 * DAY },
  { value: "30d", label: "Last 30 days", ms: 30 * DAY },
  { value: "between", label: "Between…" },
] as const;

export interface AuditFilter {
  who: string;
  /** A value of `RANGES`. */
  range: string;
  /** Times in the format of form fields, for the range `between`; empty for no bound. */
  from: string;
  until: string;
}

/** Returns the parameters of a request; an incomplete time counts as no bound. */
export function paramsOf(
  { who, range, from, until }: AuditFilter,
  zone: string,
  now: number,
): { who?: string; since?: number; until?: number } {
  const params: { who?: string; since?: number; until?: number } = {};
  if (who.trim() !== "") params.who = who.trim();
  const known = RANGES.find(({ value }) => value === range);
  if (known && "ms" in known) params.since = now - known.ms;
  if (range === "between") {
    const [since, end] = [instantOfValue(zone, from), instantOfValue(zone, until)];
    if (since !== undefined) params.since = since;
    if (end !== undefined) params.until = end;
  }
  return params;
}
