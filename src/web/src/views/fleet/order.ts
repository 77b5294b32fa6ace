/**
 * The hosts that the fleet shows, and their order: pure functions of the answers and the choices.
 */
import type { Host, HostAlerts, HostLines, HostState, Tags } from "../../api/types";
import { isFullSoon, type UntilFull } from "../../model/until-full";
import { firingOf, type FiringAlerts } from "./firing";

export const COLUMNS = [
  "state",
  "host",
  "alerts",
  "pinged",
  "version",
  "uptime",
  "cpu",
  "memory",
  "disk",
  "network",
  "filesystem",
  "full",
] as const;

export type Column = (typeof COLUMNS)[number];

/** The reader's choices: all of them are in the address. */
export interface Choice {
  /** Words that must all occur in the name or the tags. */
  q: string;
  state: HostState | undefined;
  /** Values by tag name: each tag of a matching host is one of the values of its name. */
  tags: ReadonlyMap<string, ReadonlySet<string>>;
  column: Column;
  descending: boolean;
}

/** A row of the fleet. */
export interface Row {
  host: Host;
  lines: HostLines | undefined;
  /** The alerts that fire on it. */
  alerts: FiringAlerts | undefined;
  /** The forecast of its file system that is full first. */
  full: UntilFull | undefined;
  /** The text that is searched, in lower case. */
  text: string;
}

const BADNESS: Record<HostState, number> = { up: 0, stopped: 1, late: 3, down: 5 };
/** The badness of alerts, between that of states. */
const ALERTS_BADNESS = 2;
/** The badness of a file system that is probably full within a week, below that of alerts. */
const FULL_SOON_BADNESS = 1.5;
const URGENT_ALERTS_BADNESS = 4;
/** More alerts of a host do not change its place. */
const ALERTS_MAX = 9999;

/** The need of attention: by state, alerts and forecast, then by the number of alerts. */
function attentionOf({ host, alerts, full }: Row): number {
  const byAlerts = !alerts ? 0 : alerts.isUrgent ? URGENT_ALERTS_BADNESS : ALERTS_BADNESS;
  const byForecast = full && isFullSoon(full) ? FULL_SOON_BADNESS : 0;
  const badness = Math.max(BADNESS[host.state], byAlerts, byForecast);
  return badness + Math.min(alerts?.count ?? 0, ALERTS_MAX) / (ALERTS_MAX + 1);
}

/** Returns true if no ping of a host is expected now. */
export function isAway({ state }: Host): boolean {
  return state === "down" || state === "stopped";
}

/** Columns that begin in ascending order when they are chosen. */
const ASCENDING_FIRST: readonly Column[] = ["host", "version", "full"];

export function descendingFirst(column: Column): boolean {
  return !ASCENDING_FIRST.includes(column);
}

export function rowsOf(
  hosts: readonly Host[],
  lines: Record<string, HostLines> | undefined,
  alerts: HostAlerts = {},
  forecast: ReadonlyMap<string, UntilFull> = new Map(),
): Row[] {
  return hosts.map((host) => ({
    host,
    lines: lines && Object.hasOwn(lines, host.host) ? lines[host.host] : undefined,
    alerts: firingOf(alerts, host.host),
    full: forecast.get(host.host),
    text: `${host.host} ${Object.entries(host.tags)
      .map(([name, value]) => `${name}=${value}`)
      .join(" ")}`.toLowerCase(),
  }));
}

function hasTags(tags: Tags, chosen: Choice["tags"], except?: string): boolean {
  for (const [name, values] of chosen) {
    if (name === except) continue;
    const value = Object.hasOwn(tags, name) ? tags[name] : undefined;
    if (value === undefined || !values.has(value)) return false;
  }
  return true;
}

/** The matching rows; `except` ignores one tag's filter, to count its other values. */
export function filterRows(rows: readonly Row[], choice: Choice, except?: string): Row[] {
  const words = choice.q.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter(
    ({ host, text }) =>
      (choice.state === undefined || host.state === choice.state) &&
      words.every((word) => text.includes(word)) &&
      hasTags(host.tags, choice.tags, except),
  );
}

/** The value to sort by; `undefined` comes last in both directions. */
function keyOf(row: Row, column: Column): number | string | undefined {
  const { host, lines, alerts } = row;
  switch (column) {
    case "state":
      return attentionOf(row);
    case "alerts":
      return alerts && alerts.count + (alerts.isUrgent ? ALERTS_MAX : 0);
    case "host":
      return undefined;
    case "pinged":
      return -host.pinged;
    case "version":
      return host.version;
    case "uptime":
      return host.booted === null || isAway(host) ? undefined : -host.booted;
    case "full":
      return row.full?.median;
    case "filesystem":
      return lines?.filesystem?.used_percent;
    default:
      return lines?.[column]?.last ?? undefined;
  }
}

/** Natural order of names: `web-2` before `web-10`. */
const byName = new Intl.Collator("en", { numeric: true }).compare;

function compareKeys(a: number | string, b: number | string): number {
  return typeof a === "number" && typeof b === "number" ? a - b : byName(String(a), String(b));
}

/**
 * The sorted rows; equal rows are sorted by name. `ranks` are the positions of the sorted names.
 */
export function sortRows(
  rows: readonly Row[],
  choice: Pick<Choice, "column" | "descending">,
  ranks: ReadonlyMap<string, number>,
): Row[] {
  const sign = choice.descending ? -1 : 1;
  const nameSign = choice.column === "host" ? sign : 1;
  const keyed = rows.map((row) => ({
    row,
    key: keyOf(row, choice.column),
    rank: ranks.get(row.host.host) ?? 0,
  }));
  keyed.sort((a, b) => {
    if (a.key === undefined || b.key === undefined) {
      if (a.key !== b.key) return a.key === undefined ? 1 : -1;
      return nameSign * (a.rank - b.rank);
    }
    return sign * compareKeys(a.key, b.key) || nameSign * (a.rank - b.rank);
  });
  return keyed.map(({ row }) => row);
}

/** The rank of each name: comparing names is slow, and they seldom change. */
export function ranksOf(names: readonly string[]): Map<string, number> {
  return new Map([...names].sort(byName).map((name, place) => [name, place]));
}

/** A tag with the values that hosts have, sorted by their number of hosts. */
export interface TagCounts {
  name: string;
  values: { value: string; hosts: number; chosen: boolean }[];
}

/** Counts the hosts of each value, given the other choices. */
export function tagCounts(rows: readonly Row[], choice: Choice): TagCounts[] {
  const names = new Set(rows.flatMap(({ host }) => Object.keys(host.tags)));
  return [...names].sort(byName).map((name) => {
    const chosen = choice.tags.get(name);
    const counts = new Map<string, number>([...(chosen ?? [])].map((value) => [value, 0]));
    for (const { host } of filterRows(rows, choice, name)) {
      const value = Object.hasOwn(host.tags, name) ? host.tags[name] : undefined;
      if (value !== undefined) counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    const values = [...counts].map(([value, hosts]) => ({
      value,
      hosts,
      chosen: chosen?.has(value) ?? false,
    }));
    values.sort((a, b) => b.hosts - a.hosts || byName(a.value, b.value));
    return { name, values };
  });
}

/** The held order: the remaining hosts in their previous order. */
export function heldOrder(held: readonly string[], fresh: ReadonlySet<string>): string[] {
  return held.filter((name) => fresh.has(name));
}

export function isSameOrder(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((name, place) => name === b[place]);
}
