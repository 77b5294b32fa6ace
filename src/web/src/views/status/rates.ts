/** How fast something counts up, from two answers of the daemon. */
import type { StatusAnswer } from "../../api/types";

/** What an answer says about ingest, at one time. */
export type Counted = Pick<StatusAnswer, "now" | "started" | "protocols">;

/** Samples accepted a second, by protocol; `null` while there is nothing to compare with. */
export function ratesOf(before: Counted | undefined, after: Counted): Map<string, number> | null {
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

/** Rates are those of so long: senders send each ten seconds, and some each minute. */
const WINDOW_MS = 30_000;

/** The answers to compare the next with, the oldest first. A restart forgets those before. */
export function remembered<T extends Counted>(before: readonly T[], newest: T): T[] {
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
