/** The alerts that fire on hosts: their number and worst severity. Pure. */
import type { HostAlerts } from "../../api/types";
import { isUrgent, rankOfSeverity } from "../alerts/listed";

export interface FiringAlerts {
  count: number;
  /** The worst severity; "" without any. */
  worst: string;
  /** True if the worst severity wakes people. */
  isUrgent: boolean;
  /** `2 critical, 1 warning` */
  text: string;
}

/** The firing alerts of a host; `undefined` when nothing fires. */
export function firingOf(alerts: HostAlerts, host: string): FiringAlerts | undefined {
  const counts = Object.hasOwn(alerts, host) ? Object.entries(alerts[host] ?? {}) : [];
  if (counts.length === 0) return undefined;
  counts.sort(([a], [b]) => rankOfSeverity(a) - rankOfSeverity(b) || (a < b ? -1 : 1));
  const worst = counts[0]?.[0] ?? "";
  return {
    count: counts.reduce((sum, [, count]) => sum + count, 0),
    worst,
    isUrgent: isUrgent(worst),
    text: counts
      .map(([severity, count]) => `${count} ${severity || "without severity"}`)
      .join(", "),
  };
}
