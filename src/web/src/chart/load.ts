/** Asks the daemon for what a chart draws. */
import { ApiError, api, now } from "../api/client";
import type { ChartParams } from "../api/client";
import type { Display, Kind, MetricQuery, PanelQuery, PromqlQuery } from "../api/types";
import {
  coarser,
  resolutionOfApi,
  slotOf,
  slotStarts,
  type FrameDisplay,
  type Window,
} from "../model/timeframe";
import { joined, partOfChart, partOfPromql, type ChartData, type Failure, type Part } from "./data";

export interface Asked {
  queries: readonly PanelQuery[];
  window: Window;
  /** What the chart itself wants. */
  display: Display | undefined;
  /** What the reader chose for all charts. */
  frameDisplay: FrameDisplay | undefined;
  unit: string | undefined;
  /** Tags that name series. */
  labels?: readonly string[] | undefined;
  /** Whether gauges have their band of least and greatest. */
  band: boolean;
  /** Told which queries were not answered, each time that all are through. */
  onFailures?: ((failures: Failure[]) => void) | undefined;
}

/** With more lines than this bands would hide each other. */
const BANDS_MAX = 8;
/** How long the fine slots may take before coarser ones are asked for as well. */
const PATIENCE_MS = 150;

/** What queries were answered with before: with which numbers to ask for. */
const known = new Map<string, { kind: Kind; lines: number }>();
const KNOWN_MAX = 5000;

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
  const timer =
    preview && coarse
      ? setTimeout(() => {
          const window = { ...asked.window, resolution: coarse };
          loadAll({ ...asked, window, band: false, onFailures: undefined }, signal).then(
            (data) => {
              if (!isDone) preview({ ...data, window: asked.window, isCoarse: true });
            },
            () => {
              // The fine slots are still to come, and so is what is wrong with them.
            },
          );
        }, PATIENCE_MS)
      : undefined;
  try {
    return await loadAll(asked, signal);
  } finally {
    isDone = true;
    clearTimeout(timer);
  }
}

async function loadAll(asked: Asked, signal: AbortSignal): Promise<ChartData> {
  const failures: Failure[] = [];
  const causes: Error[] = [];
  const ask = async (query: PanelQuery, at: number): Promise<Part[]> => {
    if (query.hidden) return [];
    try {
      if (query.kind === "metric") return [await loadMetric(query, asked, signal)];
      return [await loadPromql(query, asked, signal)];
    } catch (cause) {
      const error = cause instanceof Error ? cause : new Error(String(cause));
      causes.push(error);
      failures.push({ at, message: error.message });
      return [];
    }
  };
  const parts = (await Promise.all(asked.queries.map(ask))).flat();
  signal.throwIfAborted();
  asked.onFailures?.(failures);
  // One query that fails takes no other with it.
  if (parts.length === 0 && causes[0]) throw causes[0];
  return joined(parts, asked.window, asked.labels);
}

async function loadMetric(query: MetricQuery, asked: Asked, signal: AbortSignal): Promise<Part> {
  const { start, end, resolution, zone } = asked.window;
  const params: ChartParams = {
    metric: query.metric,
    tags: query.tags,
    resolution: resolutionOfApi(resolution),
    start,
    end,
    ...(resolution === "1d" ? { tz: zone } : {}),
    ...(query.group_by ? { group_by: query.group_by } : {}),
    ...(query.merge ? { merge: true } : {}),
    ...(query.top ? { top: query.top } : {}),
    ...(query.bottom ? { bottom: query.bottom } : {}),
  };
  const name = JSON.stringify([query.metric, query.tags, query.group_by, query.merge, query.top]);
  const before = known.get(name);
  const display = before ? numbersFor(before, asked) : onlyDisplay(asked);
  const answer = await api.chart({ ...params, ...withDisplay(display, query) }, signal);
  const [first] = answer.series;
  if (!first) return partOfChart(answer, asked.unit);
  const lines = new Set(answer.series.map(({ tags }) => JSON.stringify(tags))).size;
  if (known.size >= KNOWN_MAX) known.clear();
  known.set(name, { kind: first.kind, lines });
  const better = numbersFor({ kind: first.kind, lines }, asked);
  if (better === display || (display === undefined && better === ownOf(first.kind))) {
    return partOfChart(answer, asked.unit);
  }
  return partOfChart(
    await api.chart({ ...params, ...withDisplay(better, query) }, signal),
    asked.unit,
  );
}

/** Lines are ranked by the number that is drawn, not by that of its band. */
function withDisplay(display: string | undefined, query: MetricQuery): Partial<ChartParams> {
  const isRanked = Boolean(query.top ?? query.bottom);
  const by = isRanked && display?.includes(",") ? { by: "avg" } : {};
  return display === undefined ? {} : { display, ...by };
}

/** A number that is wanted whatever the kind is. */
function onlyDisplay({ display }: Asked): string | undefined {
  return display === "avg" || display === "avg_per_sec" || display === "total"
    ? undefined
    : display;
}

function ownOf(kind: Kind): Display {
  return kind === "gauge" ? "avg" : kind === "counter" ? "avg_per_sec" : "total";
}

/** The numbers to ask for, once it is known of what kind a series is. */
function numbersFor({ kind, lines }: { kind: Kind; lines: number }, asked: Asked): string {
  const { display, frameDisplay } = asked;
  const isOfFrame = display === undefined || display === "avg_per_sec" || display === "total";
  if (!isOfFrame && display !== "avg") return display;
  if (kind === "gauge") {
    if (display === "total" || display === "avg_per_sec") return display;
    return asked.band && lines <= BANDS_MAX ? "avg,min,max" : "avg";
  }
  if (display === "avg") return display;
  return frameDisplay ?? display ?? ownOf(kind);
}

async function loadPromql(query: PromqlQuery, asked: Asked, signal: AbortSignal): Promise<Part> {
  const { window } = asked;
  const times = evaluated(window, now());
  const resolution = window.resolution;
  const [start, end] = [times[0], times.at(-1)];
  const expression = query.expression;
  const given = { expression, legend: query.legend, unit: asked.unit, times };
  if (start === undefined || end === undefined) {
    return partOfPromql({ resultType: "matrix", result: [] }, given, resolution);
  }
  const answer = await api.queryRange(
    { query: expression, start: start / 1000, end: end / 1000, step: slotOf(resolution) / 1000 },
    signal,
  );
  if (!answer.data) throw new ApiError(200, "failed", answer.error ?? "there was no answer");
  const part = partOfPromql(answer.data, given, resolution);
  return { ...part, notes: [...(answer.warnings ?? []), ...(answer.infos ?? [])] };
}

/** When an expression is evaluated: at the end of each slot, and at its start for the first. */
function evaluated(window: Window, present: number): number[] {
  const starts = slotStarts(window);
  const [first] = starts;
  if (first === undefined) return [];
  // Steps are all of the same length, also over days of 23 and 25 hours.
  const step = slotOf(window.resolution);
  const times: number[] = [];
  for (let at = first; at <= Math.min(window.end, present); at += step) times.push(at);
  return times;
}
