/** The titles of the fleet's columns. */
import type { Column } from "./order";

export const COLUMN_NAMES: Record<Column, { short: string; long: string }> = {
  state: { short: "State", long: "urgency" },
  host: { short: "Host", long: "name" },
  alerts: { short: "Alerts", long: "alerts" },
  pinged: { short: "Last ping", long: "last ping" },
  version: { short: "Version", long: "version" },
  uptime: { short: "Uptime", long: "uptime" },
  cpu: { short: "CPU", long: "CPU" },
  memory: { short: "Memory", long: "memory" },
  disk: { short: "Disk", long: "disk" },
  network: { short: "Network", long: "network" },
  filesystem: { short: "File system", long: "fullest file system" },
  full: { short: "Full in", long: "time until full" },
};
