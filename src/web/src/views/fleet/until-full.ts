/** The forecasts of the fleet's file systems: requested seldom, and of a limited number of hosts. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import type { HostLines } from "../../api/types";
import { fileSystemsQuery, untilFullOf } from "../../queries/until-full";
import type { UntilFull } from "../../model/until-full";

/** A forecast reads three weeks of each file system, and changes slowly. */
const EVERY_MS = 10 * 60_000;
/** The hosts and their lines are requested first. */
const FIRST_DELAY_MS = 1500;
/** The maximum number of hosts of which all file systems are forecast. */
export const ALL_HOSTS_MAX = 300;
/** The limits for the names of hosts in a request: five selectors contain them, and an address has 8 KB. */
export const NAMED_HOSTS_MAX = 100;
export const NAMES_LENGTH_MAX = 1200;

type Lines = Record<string, HostLines>;

/**
 * The matcher of the hosts to forecast: all of a small fleet, otherwise those whose fullest file
 * systems are the fullest.
 */
export function matchersOfFleet(hosts: readonly string[], lines: Lines): string {
  if (hosts.length <= ALL_HOSTS_MAX) return "";
  const used = (host: string) =>
    Object.hasOwn(lines, host) ? (lines[host]?.filesystem?.used_percent ?? 0) : 0;
  const fullest = hosts.filter((host) => used(host) > 0).sort((a, b) => used(b) - used(a));
  const names: string[] = [];
  let length = 0;
  for (const host of fullest.slice(0, NAMED_HOSTS_MAX)) {
    const name = host.replace(/[\\^$.|?*+()[\]{}]/g, "\\$&");
    length += encodeURIComponent(name).length + encodeURIComponent("|").length;
    if (length > NAMES_LENGTH_MAX) break;
    names.push(name);
  }
  return `{host=~${JSON.stringify(names.join("|"))}}`;
}

/** The file system of each host that is full first. */
export function firstFullByHost(untilFull: readonly UntilFull[]): Map<string, UntilFull> {
  // The last entry of a host wins: the one that is full first comes last.
  return new Map(untilFull.toReversed().map((until) => [until.host, until]));
}

/** The forecasts of hosts; `undefined` until they are loaded. */
export function useFleetForecast(
  hosts: readonly string[],
  lines: Lines | undefined,
): ReadonlyMap<string, UntilFull> | undefined {
  const isStarted = useSignal(false);
  useEffect(() => {
    const timer = setTimeout(() => (isStarted.value = true), FIRST_DELAY_MS);
    return () => clearTimeout(timer);
  }, []);
  const fleet = useRef({ hosts, lines });
  fleet.current = { hosts, lines };
  const isReady = isStarted.value && lines !== undefined;
  const load = async (signal: AbortSignal) => {
    const { hosts, lines } = fleet.current;
    if (!isReady || !lines || hosts.length === 0) return undefined;
    const query = fileSystemsQuery(matchersOfFleet(hosts, lines));
    const { data } = await api.query({ query }, signal);
    return data && firstFullByHost(untilFullOf(data));
  };
  const options = { everyMs: EVERY_MS, isKeptBetween: true };
  return useResource(`until full ${isReady}`, load, options).value.data;
}
