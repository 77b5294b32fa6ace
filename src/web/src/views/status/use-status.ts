/** The daemon's status, refreshed regularly, with rates of its counters. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { api } from "../../api/client";
import { useResource, type Resource } from "../../api/resource";
import type { StatusAnswer } from "../../api/types";
import { ratesOf, answersToKeep, sum } from "./rates";

/** The delay of the second answer, which the first rates need. */
const SECOND_ANSWER_MS = 1500;
/** The default pause of agents between collections. */
const PAUSE_MS = 10_000;

export interface LiveStatus extends Resource<StatusAnswer> {
  /** Samples per second by protocol; `null` until the second answer. */
  rates: Map<string, number> | null;
}

export function useStatus(everyMs: number): LiveStatus {
  const rates = useSignal<Map<string, number> | null>(null);
  const before = useRef<StatusAnswer[]>([]);
  const pause = rates.value ? everyMs : SECOND_ANSWER_MS;
  const { value } = useResource("status", api.status, { everyMs: pause });
  useEffect(() => {
    if (!value.data) return;
    const oldest = before.current[0];
    const found = ratesOf(oldest, value.data);
    before.current = answersToKeep(before.current, value.data);
    // No samples within a second or two do not mean a rate of 0: senders pause for ten seconds.
    const isLong = value.data.now - (oldest?.now ?? value.data.now) >= PAUSE_MS;
    if (found && (isLong || sum(found.values()) > 0)) rates.value = found;
  }, [value.data]);
  return { ...value, rates: rates.value };
}
