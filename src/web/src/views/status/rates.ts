/** Rates of counters, computed from two answers of the daemon. */
import type { StatusAnswer } from "../../api/types";

/** The ingest counters of an answer, and their time. */
export type IngestCounters = Pick<StatusAnswer, "now" | "started" | "protocols">;

/** Accepted samples per second, by protocol; `null` without an earlier answer. */
export function ratesOf(
  before: IngestCounters | undefined,
  after: IngestCounters,
): Map<string, number> | null {
  // A daemon that was restarted counts from 0.
  if (!before || before.started !== after.started || after.now <= before.now) return null;
  const counts = new Map(before.protocols.map(({ protocol, accepted }) => [protocol, accepted]));
  const seconds = (after.now - before.now) / 1000;
  return new Map(
    after.protocols.map(({ protocol, accepted }) => {
      const since = accepted - (counts.get(protocol) ?? 0);
      return [protocol, Math.max(0, since) / seconds];
    }),
  );
}

/** The time over which rates are computed: most senders send every ten seconds. */
const WINDOW_MS = 30_000;

/**
 * The answers to compare with the next answer, the oldest first. A restart discards them.
 */
export function answersToKeep<T extends IngestCounters>(before: readonly T[], newest: T): T[] {
  const kept = before.filter(
    ({ now, started }) =>
      started === newest.started && now < newest.now && newest.now - now <= WINDOW_MS,
  );
  return [...kept, newest];
}

export function sum(numbers: Iterable<number>): number {
  let total = 0;
  for (const number of numbers) total += number;
  return total;
}
