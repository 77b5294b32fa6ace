/** Shares of a whole and of limits. */
import type { StatusAnswer } from "../../api/types";

/** The shares from which on a limit is near, and nearly reached. */
const NEAR = 0.8;
const REACHED = 0.95;

/** A part of a whole; 0 for an empty whole. */
export function shareOf(part: number, whole: number): number {
  return whole > 0 ? part / whole : 0;
}

export type Level = "" | "warn" | "bad";

export function levelOf(share: number): Level {
  return share >= REACHED ? "bad" : share >= NEAR ? "warn" : "";
}

type Limit = StatusAnswer["limits"][number];

/** The limits, sorted by their share; a limit of 0 means none and comes last. */
export function nearestFirst(limits: readonly Limit[]): Limit[] {
  const share = ({ used, max }: Limit) => shareOf(used, max);
  return [...limits].sort((a, b) => share(b) - share(a) || a.name.localeCompare(b.name));
}

/** The number of limits that are nearly reached. */
export function limitsNear(limits: readonly Limit[]): number {
  return limits.filter(({ used, max }) => levelOf(shareOf(used, max)) !== "").length;
}

type Sender = StatusAnswer["senders"]["top"][number];
export type SenderColumn = "agent" | "series" | "samples" | "heard";

export function sendersBy(senders: readonly Sender[], column: SenderColumn): Sender[] {
  return [...senders].sort((a, b) =>
    column === "agent" ? a.agent.localeCompare(b.agent) : (b[column] ?? 0) - (a[column] ?? 0),
  );
}
