/** Requests the values of an expression over a window. */
import { ApiError, api, now } from "../api/client";
import type { PromqlMatrix, PromqlQuery } from "../api/types";
import { slotOf, slotStarts, type Window } from "../model/timeframe";
import { partOfPromql, type Part } from "./data";
import type { ChartRequest } from "./chart-spec";
import { fillIntervals } from "./interval-variables";

export async function loadPromql(
  query: PromqlQuery,
  { window, unit, isAhead }: ChartRequest,
  signal: AbortSignal,
): Promise<Part> {
  const times = evaluationTimes(window, isAhead ? Infinity : now());
  const expression = query.expression;
  const step = slotOf(window.resolution);
  const filled = fillIntervals(expression, step, window.end - window.start);
  const answers = await Promise.all(
    evenRuns(times, step).map(([start, end]) => {
      const seconds = { start: start / 1000, end: end / 1000, step: step / 1000 };
      return api.queryRange({ query: filled, ...seconds }, signal);
    }),
  );
  const matrices = answers.map(({ data, error }) => {
    if (!data) throw new ApiError(200, "failed", error ?? "the daemon sent no result");
    return data;
  });
  const request = { expression, legend: query.legend, unit, times };
  const part = partOfPromql(mergeMatrices(matrices), request, window.resolution);
  const notes = answers.flatMap(({ warnings = [], infos = [] }) => [...warnings, ...infos]);
  return { ...part, notes: [...part.notes, ...notes] };
}

/** The evaluation times: the start of each slot, and the end of the last. */
export function evaluationTimes(window: Window, present: number): number[] {
  const times = slotStarts(window).filter((at) => at <= present);
  const isEndPast = window.end <= present && times.at(-1) !== window.end;
  return isEndPast ? [...times, window.end] : times;
}

/** The first and last time of each run of even steps; a day of 23 or 25 hours ends a run. */
export function evenRuns(times: readonly number[], step: number): [number, number][] {
  const runs: [number, number][] = [];
  for (const at of times) {
    const last = runs.at(-1);
    if (last && at - last[1] === step) last[1] = at;
    else runs.push([at, at]);
  }
  return runs;
}

/** Merges the series of several answers. */
function mergeMatrices(matrices: readonly PromqlMatrix[]): PromqlMatrix {
  const [first, ...others] = matrices;
  if (first && others.length === 0) return first;
  const series = new Map<string, PromqlMatrix["result"][number]>();
  for (const { metric, values = [], histograms = [] } of matrices.flatMap(({ result }) => result)) {
    const name = JSON.stringify(Object.entries(metric).sort(([a], [b]) => (a < b ? -1 : 1)));
    const before = series.get(name);
    series.set(name, {
      metric,
      values: [...(before?.values ?? []), ...values],
      histograms: [...(before?.histograms ?? []), ...histograms],
    });
  }
  return { resultType: "matrix", result: [...series.values()] };
}
