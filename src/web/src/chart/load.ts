/** Loads the data of a chart. */
import { coarser, type Window } from "../model/timeframe";
import { joinParts, type ChartData, type Failure, type Part } from "./data";
import { loadMetrics } from "./load-metrics";
import { loadPromql } from "./load-promql";
import type { ChartRequest } from "./chart-spec";

/** The time after which coarser slots are requested too. */
const PREVIEW_AFTER_MS = 150;
/** A timer later than this was delayed by the page's own work, not by the daemon. */
const TIMER_DELAY_MAX_MS = 30;
/** The time for which an early answer is kept. */
const EARLY_KEPT_MS = 5000;

/** Answers requested before their charts exist, by request. */
const earlyAnswers = new Map<string, Promise<ChartData>>();

/** Requests the data of a chart that does not exist yet. */
export function loadEarly(request: ChartRequest): void {
  const key = JSON.stringify(request);
  if (earlyAnswers.has(key)) return;
  const onFailures = (failures: Failure[]) => {
    // The chart repeats the request and shows the error.
    if (failures.length > 0) throw new Error("not all queries were answered");
  };
  const data = loadAll({ ...request, onFailures }, new AbortController().signal);
  const removeEarly = () => void earlyAnswers.delete(key);
  earlyAnswers.set(key, data);
  data.catch(removeEarly);
  setTimeout(removeEarly, EARLY_KEPT_MS);
}

/** The early answer, or a new request. */
async function takeEarlyOrLoad(request: ChartRequest, signal: AbortSignal): Promise<ChartData> {
  const key = JSON.stringify({ ...request, onFailures: undefined });
  const earlyData = await earlyAnswers.get(key)?.catch(() => undefined);
  earlyAnswers.delete(key);
  if (!earlyData) return loadAll(request, signal);
  signal.throwIfAborted();
  request.onFailures?.([]);
  return earlyData;
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
  const coarserResolution = coarser(request.window.resolution);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const schedulePreview = () => {
    const startedAt = performance.now();
    timer = setTimeout(() => {
      // The answer may be queued behind this timer.
      if (performance.now() - startedAt > PREVIEW_AFTER_MS + TIMER_DELAY_MAX_MS) schedulePreview();
      else if (coarserResolution) loadPreview(coarserResolution);
    }, PREVIEW_AFTER_MS);
  };
  const loadPreview = (resolution: Window["resolution"]) => {
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
  if (preview && coarserResolution) schedulePreview();
  try {
    return await takeEarlyOrLoad(request, signal);
  } finally {
    isDone = true;
    clearTimeout(timer);
  }
}

async function loadAll(request: ChartRequest, signal: AbortSignal): Promise<ChartData> {
  const visibleQueries = request.queries
    .map((query, at) => ({ query, at }))
    .filter(({ query }) => !query.hidden);
  const metrics = visibleQueries.flatMap(({ query }) => (query.kind === "metric" ? [query] : []));
  const metricParts = loadMetrics(metrics, request, signal);
  const loadPart = async (
    query: (typeof visibleQueries)[number]["query"],
  ): Promise<Part | Error> => {
    if (query.kind === "promql") return loadPromql(query, request, signal).catch(errorOf);
    const parts = await metricParts;
    return parts[metrics.indexOf(query)] ?? new Error("the daemon sent no result");
  };
  const answers = await Promise.all(visibleQueries.map(({ query }) => loadPart(query)));
  signal.throwIfAborted();
  const parts = answers.filter((answer): answer is Part => !(answer instanceof Error));
  const errors = answers.filter((answer): answer is Error => answer instanceof Error);
  const failures = answers.flatMap((answer, k) =>
    answer instanceof Error ? [{ index: visibleQueries[k]?.at ?? k, message: answer.message }] : [],
  );
  request.onFailures?.(failures);
  // A failed query does not affect the others.
  if (parts.length === 0 && errors[0]) throw errors[0];
  return joinParts(parts, request.window, request.labels);
}

function errorOf(cause: unknown): Error {
  return cause instanceof Error ? cause : new Error(String(cause));
}
