/**
 * Requests series of metrics. Queries that differ only in their metric share one request, because a
 * browser sends six at a time. The numbers to request depend on the kind of a series, which the
 * first answer contains unless it is known already.
 */
import { api, type ChartParams } from "../api/client";
import type { ChartAnswer, Display, Kind, MetricQuery, SeriesEntry } from "../api/types";
import { quoteIfNeeded } from "../model/quoted";
import { resolutionOfApi } from "../model/timeframe";
import type { Part } from "./data";
import { partOfChart } from "./part-of-chart";
import type { ChartRequest } from "./chart-spec";

/** The maximum number of lines with bands: more bands would hide each other. */
const BANDS_MAX = 8;
/** The percentiles of a line of histograms. */
const PERCENTILES = "p50,p90,p99,p99.9";
/** The numbers of a heat map of histograms: its cells, and lines that the pointer shows. */
const DISTRIBUTION = `distribution,${PERCENTILES}`;
/** The maximum number of lines with all percentiles; of more lines, one percentile is drawn. */
const PERCENTILE_LINES_MAX = 2;
/** The maximum number of metrics in a request. */
const METRICS_MAX = 32;

interface KnownKind {
  kind: Kind;
  lines: number;
}

/** Kind and line count of earlier answers, which decide the numbers to request. */
const knownKinds = new Map<string, KnownKind>();
const KNOWN_KINDS_MAX = 5000;

function cacheKey({ metric, tags, group_by, merge, top, bottom }: MetricQuery): string {
  return JSON.stringify([metric, tags, group_by, merge, top, bottom]);
}

function rememberKind(name: string, foundKind: KnownKind): void {
  if (knownKinds.size >= KNOWN_KINDS_MAX) knownKinds.clear();
  knownKinds.set(name, foundKind);
}

/** Remembers the series of these tags, as `/api/v1/series` lists them. */
export function rememberSeries(tags: string, series: readonly SeriesEntry[]): void {
  const foundKinds = new Map<string, KnownKind>();
  for (const { metric, kind } of series) {
    foundKinds.set(metric, { kind, lines: (foundKinds.get(metric)?.lines ?? 0) + 1 });
  }
  for (const [metric, series] of foundKinds)
    rememberKind(cacheKey({ kind: "metric", metric, tags }), series);
}

/** A query and the numbers to request; `undefined` for the kind's default. */
interface NumbersRequest {
  query: MetricQuery;
  display: string | undefined;
}

/** Loads each query's part of a chart, or its error. */
export async function loadMetrics(
  queries: readonly MetricQuery[],
  request: ChartRequest,
  signal: AbortSignal,
): Promise<(Part | Error)[]> {
  const parts = new Map<MetricQuery, Part | Error>();
  const requestAll = async (requests: NumbersRequest[]) => {
    const repeated: NumbersRequest[] = [];
    const loadGroup = async (group: NumbersRequest[]) => {
      try {
        const chart = await api.chart(paramsOf(group, request), signal);
        for (const entry of group) {
          const queryAnswer = answerForQuery(entry.query, group.length > 1, chart);
          const display = betterDisplay(entry, queryAnswer, request);
          if (display === undefined) parts.set(entry.query, partOfChart(queryAnswer, request.unit));
          else repeated.push({ query: entry.query, display });
        }
      } catch (cause) {
        const error = cause instanceof Error ? cause : new Error(String(cause));
        for (const { query } of group) parts.set(query, error);
      }
    };
    await Promise.all(groupsOf(requests).map(loadGroup));
    return repeated;
  };
  const firstRequest = (query: MetricQuery): NumbersRequest => {
    const knownKind = knownKinds.get(cacheKey(query));
    return { query, display: knownKind ? numbersFor(knownKind, request) : fixedDisplay(request) };
  };
  // Kinds learned from the first answers also apply to later answers.
  const repeated = await requestAll(queries.map(firstRequest));
  if (repeated.length > 0) await requestAll(repeated);
  return queries.map(
    (query) => parts.get(query) ?? new Error("the kind of its series keeps changing"),
  );
}

/** Returns true if a query requests the unmerged series of its metric. */
function isUnmerged({ group_by, merge, top, bottom }: MetricQuery): boolean {
  return !group_by && !merge && !top && !bottom;
}

/** Groups the queries that share a request. */
function groupsOf(requests: readonly NumbersRequest[]): NumbersRequest[][] {
  const groups = new Map<string, NumbersRequest[]>();
  requests.forEach((entry, k) => {
    const { query, display } = entry;
    // A metric without histograms fails alone.
    const isShared = isUnmerged(query) && !isOfHistograms(display);
    const groupName = isShared ? Math.floor(k / METRICS_MAX) : cacheKey(query);
    const key = JSON.stringify([query.tags, display, groupName]);
    groups.set(key, [...(groups.get(key) ?? []), entry]);
  });
  return [...groups.values()];
}

function paramsOf(group: readonly NumbersRequest[], { window }: ChartRequest): ChartParams {
  const [first] = group as [NumbersRequest];
  const { query, display } = first;
  const { start, end, resolution, zone } = window;
  const names = group.map((entry) => quoteIfNeeded(entry.query.metric, /,|^"/));
  return {
    ...(group.length > 1 ? { metrics: names.join(",") } : { metric: query.metric }),
    tags: query.tags,
    resolution: resolutionOfApi(resolution),
    start,
    end,
    ...(resolution === "1d" ? { tz: zone } : {}),
    ...mergeOf(query, display),
    ...(query.top ? { top: query.top } : {}),
    ...(query.bottom ? { bottom: query.bottom } : {}),
    ...withDisplay(display, query),
  };
}

/** A heat map adds all its histograms, so the daemon merges them, unless lines are ranked. */
function mergeOf(query: MetricQuery, display: string | undefined): Partial<ChartParams> {
  const { group_by, merge, top, bottom } = query;
  if (isDistribution(display) && !top && !bottom) return { merge: true };
  return { ...(group_by ? { group_by } : {}), ...(merge ? { merge } : {}) };
}

/** Selects a query's part of an answer. */
function answerForQuery(
  { metric }: MetricQuery,
  isShared: boolean,
  answer: ChartAnswer,
): ChartAnswer {
  if (!isShared) return answer;
  return { ...answer, series: answer.series.filter((series) => series.metric === metric) };
}

/** The numbers to request instead, when the requested numbers do not fit the kind in the answer. */
function betterDisplay(
  { query, display }: NumbersRequest,
  answer: ChartAnswer,
  request: ChartRequest,
) {
  const [first] = answer.series;
  if (!first) return undefined;
  const lines = new Set(answer.series.map(({ tags }) => JSON.stringify(tags))).size;
  const foundKind = { kind: first.kind, lines };
  // The lines of a heat map are merged.
  if (!isDistribution(display)) rememberKind(cacheKey(query), foundKind);
  const better = numbersFor(foundKind, request);
  const isEquivalent =
    better === display || (display === undefined && better === defaultDisplay(first.kind));
  return isEquivalent ? undefined : better;
}

/** Lines are ranked by the drawn number, not by its band. */
function withDisplay(display: string | undefined, query: MetricQuery): Partial<ChartParams> {
  const isRanked = Boolean(query.top ?? query.bottom);
  const by = isRanked && display?.includes(",") ? { by: rankOf(display) } : {};
  return display === undefined ? {} : { display, ...by };
}

function rankOf(display: string): Display {
  return isOfHistograms(display) ? "p99" : "avg";
}

function isDistribution(display: string | undefined): boolean {
  return display?.startsWith("distribution") ?? false;
}

/** Returns true for numbers that only histograms have. */
function isOfHistograms(display: string | undefined): boolean {
  return isDistribution(display) || /^p\d/.test(display ?? "");
}

/** The number to request when it does not depend on the kind. */
function fixedDisplay({ display }: ChartRequest): string | undefined {
  if (display === "distribution") return DISTRIBUTION;
  return display === "avg" || display === "avg_per_sec" || display === "total"
    ? undefined
    : display;
}

function defaultDisplay(kind: Kind): Display {
  return kind === "gauge" ? "avg" : kind === "counter" ? "avg_per_sec" : "total";
}

/** The numbers to request for a known kind. */
function numbersFor({ kind, lines }: KnownKind, request: ChartRequest): string {
  const { display, frameDisplay, heat } = request;
  const isHistogram = kind.endsWith("histogram");
  if (display === "distribution" || (isHistogram && display === undefined && heat))
    return DISTRIBUTION;
  if (isHistogram && display === undefined && frameDisplay === undefined)
    return lines <= PERCENTILE_LINES_MAX ? PERCENTILES : "p99";
  const dependsOnFrame = display === undefined || display === "avg_per_sec" || display === "total";
  if (!dependsOnFrame && display !== "avg") return display;
  if (kind === "gauge") {
    if (display === "total") return display;
    return request.band && lines <= BANDS_MAX ? "avg,min,max" : "avg";
  }
  if (display === "avg") return display;
  return frameDisplay ?? display ?? defaultDisplay(kind);
}
