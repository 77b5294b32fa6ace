/** Follows the list of hosts: after the first answer, the daemon sends only what changed. */
import { ApiError } from "../../api/client";
import type { Host, HostsAnswer } from "../../api/types";

type Request = (params: { since?: string }, signal: AbortSignal) => Promise<HostsAnswer>;

/** Returns a function that requests the whole list once, and then its changes. */
export function followHosts(request: Request): (signal: AbortSignal) => Promise<HostsAnswer> {
  let known: HostsAnswer | undefined;
  return async (signal) => {
    const since = known?.version;
    const changes = since ? await changesSince(request, since, signal) : undefined;
    const merged = known && changes && withChanges(known, changes);
    known = merged ?? (await request({}, signal));
    return known;
  };
}

/** The changes; `undefined` from a daemon of an older version, which lacks the parameter. */
async function changesSince(
  request: Request,
  since: string,
  signal: AbortSignal,
): Promise<HostsAnswer | undefined> {
  try {
    return await request({ since }, signal);
  } catch (cause) {
    if (cause instanceof ApiError && cause.status === 400) return undefined;
    throw cause;
  }
}

/**
 * The list with its changes; unchanged hosts stay the same objects. `undefined` when hosts are
 * missing from the result or were removed, so that the whole list is needed.
 */
export function withChanges(known: HostsAnswer, changes: HostsAnswer): HostsAnswer | undefined {
  if (!changes.is_partial) return changes;
  const byName = new Map<string, Host>(known.hosts.map((host) => [host.host, host]));
  for (const host of changes.hosts) byName.set(host.host, host);
  for (const [name, pinged] of Object.entries(changes.pings)) {
    const host = byName.get(name);
    if (!host) return undefined;
    byName.set(name, { ...host, state: "up", pinged });
  }
  const count = Object.values(changes.totals).reduce((sum, hosts) => sum + hosts, 0);
  return byName.size === count ? { ...changes, hosts: [...byName.values()] } : undefined;
}
