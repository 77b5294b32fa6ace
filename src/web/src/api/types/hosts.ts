/** Hosts and their agents. */
import type { Tags } from "./series";

/** `/api/v1/hosts` */
export interface HostsAnswer {
  now: number;
  late_after_ms: number;
  down_after_ms: number;
  totals: Record<HostState, number>;
  hosts: Host[];
  /** The version of the list, for a later request of its changes. */
  version: string;
  /** True if `hosts` contains only changed hosts. */
  is_partial: boolean;
  /** The latest pings of hosts without other changes, in a partial answer. */
  pings: Record<string, number>;
  alerts: HostAlerts;
}

/** The number of firing alerts that are not silenced, by host and severity. */
export type HostAlerts = Record<string, Record<string, number>>;

export type HostState = "up" | "late" | "down" | "stopped";

export interface Host {
  host: string;
  state: HostState;
  /** The time of its last ping. */
  pinged: number;
  first_seen: number;
  /** The time of its boot, if an agent reports it. */
  booted: number | null;
  tags: Tags;
  version: string;
  agents: HostAgent[];
}

export interface HostAgent {
  agent: string;
  program: string;
  version: string;
  started: number;
  pinged: number;
  interval_ms: number;
  state: HostState;
  silent_ms: number;
  /** The lead of its clock over the daemon's. */
  skew_ms: number;
}

/** `/api/v1/hosts/sparklines`: the last hour of all hosts. */
export interface SparklinesAnswer {
  start: number;
  step_ms: number;
  points: number;
  hosts: Record<string, HostLines>;
}

export interface HostLines {
  /** Percent. */
  cpu?: Spark;
  /** Percent. */
  memory?: Spark;
  /** Percent used of the fullest file system. */
  disk?: Spark;
  /** Bytes a second, both directions. */
  network?: Spark;
  /** The fullest file system. */
  filesystem?: { mount: string; used_percent: number };
}

/** A line of coarse points: `.` is no value, `0-9A-Za-z` are 0 to 61 parts of `max`. */
export interface Spark {
  last: number | null;
  max: number;
  line: string;
}
