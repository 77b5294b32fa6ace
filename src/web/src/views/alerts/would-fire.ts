/** The times at which a rule would have fired, from the results of its expression. Pure. */
import type { PromqlMatrix } from "../../api/types";

/** A time span in which an alert of a rule would have fired. */
export interface FiringSpan {
  start: number;
  end: number;
}

export interface WouldFire {
  /** The spans of all series, the earliest first. */
  spans: FiringSpan[];
  /** The number of series that would have fired. */
  series: number;
  /** The time in which at least one series would have fired, in milliseconds. */
  totalMs: number;
}

/**
 * The spans of a rule whose expression was evaluated at each step. An alert fires after `forMs`,
 * rounded up to whole steps; a wait that is shorter than a step cannot be checked, and counts as
 * over.
 */
export function wouldFire(matrix: PromqlMatrix, stepMs: number, forMs: number): WouldFire {
  const waitMs = forMs < stepMs ? 0 : Math.ceil(forMs / stepMs) * stepMs;
  const bySeries = matrix.result.map(({ values = [] }) =>
    runsOf(
      values.map(([seconds]) => Math.round(seconds * 1000)),
      stepMs,
    )
      .filter(({ start, end }) => end - start >= waitMs)
      .map(({ start, end }) => ({ start: start + waitMs, end: end + stepMs })),
  );
  const spans = bySeries.flat().sort((a, b) => a.start - b.start || a.end - b.end);
  const series = bySeries.filter((found) => found.length > 0).length;
  return { spans, series, totalMs: coveredMs(spans) };
}

/** The first and last time of each run of consecutive steps. */
function runsOf(times: readonly number[], stepMs: number): FiringSpan[] {
  const runs: FiringSpan[] = [];
  for (const at of times) {
    const last = runs.at(-1);
    if (last && at - last.end <= stepMs) last.end = at;
    else runs.push({ start: at, end: at });
  }
  return runs;
}

/** The length of the union of spans, which are sorted by their start. */
function coveredMs(spans: readonly FiringSpan[]): number {
  let total = 0;
  let covered = -Infinity;
  for (const { start, end } of spans) {
    total += Math.max(0, end - Math.max(start, covered));
    covered = Math.max(covered, end);
  }
  return total;
}
