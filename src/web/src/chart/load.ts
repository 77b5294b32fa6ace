/** Asks the daemon for what a chart draws. */
import { coarser, type Window } from "../model/timeframe";
import { joined, type ChartData, type Failure, type Part } from "./data";
import { loadMetrics } from "./load-metrics";
import { loadPromql } from "./load-promql";
import type { Asked } from "./wish";

/** How long the fine slots may take before coarser ones are asked for as well. */
const PATIENCE_MS = 150;
/** A timer that is later than this was held up by the page's own work, not by the daemon. */
const HELD_UP_MS = 30;
/** How long an early answer is kept for its chart. */
const EARLY_MS = 5000;

/** Answers that were asked for before their charts were there, by what was asked. */
const early = new Map<string, Promise<ChartData>>();

/** Asks for what a chart will ask for that is not there yet. */
export function loadEarly(asked: Asked): void {
  const key = JSON.stringify(asked);
  if (early.has(key)) return;
  const onFailures = (failures: Failure[]) => {
    // The chart asks again, and tells it.
    if (failures.length > 0) throw new Error("not all queries were answered");
  };
  const data = loadAll({ ...asked, onFailures }, new AbortController().signal);
  const forget = () => void early.delete(key);
  early.set(key, data);
  data.catch(forget);
  setTimeout(forget, EARLY_MS);
}

/** The early answer, or one that is asked for now. */
async function loadOnce(asked: Asked, signal: AbortSignal): Promise<ChartData> {
  const key = JSON.stringify({ ...asked, onFailures: undefined });
  const soon = await early.get(key)?.catch(() => undefined);
  early.delete(key);
  if (!soon) return loadAll(asked, signal);
  signal.throwIfAborted();
  asked.onFailures?.([]);
  return soon;
}

/**
 * Loads a chart. While it takes long and nothing of the window is shown yet, `preview` gets coarser
 * slots.
 */
export async function load(
  asked: Asked,
  signal: AbortSignal,
  preview?: (data: ChartData) => void,
): Promise<ChartData> {
  let isDone = false;
  const coarse = coarser(asked.window.resolution);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const wait = () => {
    const begun = performance.now();
    timer = setTimeout(() => {
      // The answer may be there already, behind this timer.
      if (performance.now() - begun > PATIENCE_MS + HELD_UP_MS) wait();
      else if (coarse) showCoarse(coarse);
    }, PATIENCE_MS);
  };
  const showCoarse = (resolution: Window["resolution"]) => {
    const window = { ...asked.window, resolution };
    loadAll({ ...asked, window, band: false, onFailures: undefined }, signal).then(
      (data) => {
        if (!isDone) preview?.({ ...data, window: asked.window, isCoarse: true });
      },
      () => {
        // The fine slots are still to come, and so is what is wrong with them.
      },
    );
  };
  if (preview && coarse) wait();
  try {
    return await loadOnce(asked, signal);
  } finally {
    isDone = true;
    clearTimeout(timer);
  }
}

async function loadAll(asked: Asked, signal: AbortSignal): Promise<ChartData> {
  const shown = asked.queries
    .map((query, at) => ({ query, at }))
    .filter(({ query }) => !query.hidden);
  const metrics = shown.flatMap(({ query }) => (query.kind === "metric" ? [query] : []));
  const ofMetrics = loadMetrics(metrics, asked, signal);
  const partOf = async (query: (typeof shown)[number]["query"]): Promise<Part | Error> => {
    if (query.kind === "promql") return loadPromql(query, asked, signal).catch(errorOf);
    const parts = await ofMetrics;
    return parts[metrics.indexOf(query)] ?? new Error("there was no answer");
  };
  const answers = await Promise.all(shown.map(({ query }) => partOf(query)));
  signal.throwIfAborted();
  const parts = answers.filter((answer): answer is Part => !(answer instanceof Error));
  const errors = answers.filter((answer): answer is Error => answer instanceof Error);
  const failures = answers.flatMap((answer, k) =>
    answer instanceof Error ? [{ at: shown[k]?.at ?? k, message: answer.message }] : [],
  );
  asked.onFailures?.(failures);
  // One query that fails takes no other with it.
  if (parts.length === 0 && errors[0]) throw errors[0];
  return joined(parts, asked.window, asked.labels);
}

function errorOf(cause: unknown): Error {
  return cause instanceof Error ? cause : new Error(String(cause));
}
