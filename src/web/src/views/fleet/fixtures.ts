import type { Host } from "../../api/types";

/** Returns a host of tests that is up. */
export function host(name: string, changes: Partial<Host> = {}): Host {
  return {
    host: name,
    state: "up",
    pinged: 1000,
    first_seen: 0,
    booted: 0,
    tags: {},
    version: "1",
    agents: [],
    ...changes,
  };
}
