/** Loads the data of a chart. */
import { coarser, type Window } from "../model/timeframe";
import { joinParts, type ChartData, type Failure, type Part } from "./data";
import { loadMetrics } from "./load-metrics";
import { loadPromql } from "./load-promql";
import type { ChartRequest } from "./chart-spec";

/** The time after which coarser slots are requested too. */
const PATIENCE_MS = 150;
/** A timer later than this was delayed by the page's own work, not by the daemon. */
const HELD_UP_MS = 30;
/** The time for which an early answer is kept. */
const EARLY_MS = 5000;

/** Answers requested before their charts exist, by request. */
const early = new Map<string, Promise<ChartData>>();

/** Requests the data of a chart that does not exist yet. */
export function loadEarly(request: ChartRequest): void {
  const key = JSON.stringify(request);
  if (early.has(key)) return;
  const onFailures = (failures: Failure[]) => {
    // The chart repeats the request and shows the error.
    if (failures.length > 0) throw new Error("not all queries were answered");
  };
  const data = loadAll({ ...request, onFailures }, new AbortController().signal);
  const forget = () => void early.delete(key);
  early.set(key, data);
  data.catch(forget);
  setTimeout(forget, EARLY_MS);
}

/** The early answer, or a new request. */
async function loadOnce(request: ChartRequest, signal: AbortSignal): Promise<ChartData> {
  const key = JSON.stringify({ ...request, onFailures: undefined });
  const soon = await early.get(key)?.catch(() => undefined);
  early.delete(key);
  if (!soon) return loadAll(request, signal);
  signal.throwIfAborted();
  request.onFailures?.([]);
  return soon;
}

/**
 * Loads a chart. When the answer takes long and nothing of the window is shown, `preview` receives
 * coarser slots.
 */
export async function load(
  request: ChartRequest,
  signal: AbortSignal,
  preview?: (data: ChartData) => void,
): Promise<ChartData> {
  let isDone = false;
  const coarse = coarser(request.window.resolution);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const wait = () => {
    const begun = performance.now();
    timer = setTimeout(() => {
      // The answer may be queued behind this timer.
      if (performance.now() - begun > PATIENCE_MS + HELD_UP_MS) wait();
      else if (coarse) showCoarse(coarse);
    }, PATIENCE_MS);
  };
  const showCoarse = (resolution: Window["resolution"]) => {
    const window = { ...request.window, resolution };
    loadAll({ ...request, window, band: false, onFailures: undefined }, signal).then(
      (data) => {
        if (!isDone) preview?.({ ...data, window: request.window, isCoarse: true });
      },
      () => {
        // The request for fine slots reports errors.
      },
    );
  };
  if (preview && coarse) wait();
  try {
    return await loadOnce(request, signal);
  } finally {
    isDone = true;
    clearTimeout(timer);
  }
}

async function loadAll(request: ChartRequest, signal: AbortSignal): Promise<ChartData> {
  const shown = request.queries
    .map((query, at) => ({ query, at }))
    .filter(({ query }) => !query.hidden);
  const metrics = shown.flatMap(({ query }) => (query.kind === "metric" ? [query] : []));
  const ofMetrics = loadMetrics(metrics, request, signal);
  const partOf = async (query: (typeof shown)[number]["query"]): Promise<Part | Error> => {
    if (query.kind === "promql") return loadPromql(query, request, signal).catch(errorOf);
    const parts = await ofMetrics;
    return parts[metrics.indexOf(query)] ?? new Error("the daemon sent no result");
  };
  const answers = await Promise.all(shown.map(({ query }) => partOf(query)));
  signal.throwIfAborted();
  const parts = answers.filter((answer): answer is Part => !(answer instanceof Error));
  const errors = answers.filter((answer): answer is Error => answer instanceof Error);
  const failures = answers.flatMap((answer, k) =>
    answer instanceof Error ? [{ at: shown[k]?.at ?? k, message: answer.message }] : [],
  );
  request.onFailures?.(failures);
  // A failed query does not affect the others.
  if (parts.length === 0 && errors[0]) throw errors[0];
  return joinParts(parts, request.window, request.labels);
}

function errorOf(cause: unknown): Error {
  return cause instanceof Error ? cause : new Error(String(cause));
}
