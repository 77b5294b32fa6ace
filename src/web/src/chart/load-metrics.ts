/**
 * Requests series of metrics. Queries that differ only in their metric share one request, because a
 * browser sends six at a time. The numbers to request depend on the kind of a series, which the
 * first answer contains unless it is known already.
 */
import { api, type ChartParams } from "../api/client";
import type { ChartAnswer, Display, Kind, MetricQuery, SeriesEntry } from "../api/types";
import { quoted } from "../model/quoted";
import { resolutionOfApi } from "../model/timeframe";
import { partOfChart, type Part } from "./data";
import type { Asked } from "./wish";

/** The most lines with bands: more bands would hide each other. */
const BANDS_MAX = 8;
/** The most metrics of one request. */
const METRICS_MAX = 32;

interface Known {
  kind: Kind;
  lines: number;
}

/** Kind and line count of earlier answers, which decide the numbers to request. */
const known = new Map<string, Known>();
const KNOWN_MAX = 5000;

function nameOf({ metric, tags, group_by, merge, top, bottom }: MetricQuery): string {
  return JSON.stringify([metric, tags, group_by, merge, top, bottom]);
}

function learn(name: string, found: Known): void {
  if (known.size >= KNOWN_MAX) known.clear();
  known.set(name, found);
}

/** Remembers the series of these tags, as `/api/v1/series` lists them. */
export function know(tags: string, series: readonly SeriesEntry[]): void {
  const found = new Map<string, Known>();
  for (const { metric, kind } of series) {
    found.set(metric, { kind, lines: (found.get(metric)?.lines ?? 0) + 1 });
  }
  for (const [metric, series] of found) learn(nameOf({ kind: "metric", metric, tags }), series);
}

/** A query and the numbers to request; `undefined` for the kind's default. */
interface Wanted {
  query: MetricQuery;
  display: string | undefined;
}

/** Loads each query's part of a chart, or its error. */
export async function loadMetrics(
  queries: readonly MetricQuery[],
  asked: Asked,
  signal: AbortSignal,
): Promise<(Part | Error)[]> {
  const parts = new Map<MetricQuery, Part | Error>();
  const ask = async (wanted: Wanted[]) => {
    const again: Wanted[] = [];
    const answer = async (group: Wanted[]) => {
      try {
        const whole = await api.chart(paramsOf(group, asked), signal);
        for (const entry of group) {
          const queryAnswer = answerTo(entry.query, group.length > 1, whole);
          const better = betterFor(entry, queryAnswer, asked);
          if (better === undefined) parts.set(entry.query, partOfChart(queryAnswer, asked.unit));
          else again.push({ query: entry.query, display: better });
        }
      } catch (cause) {
        const error = cause instanceof Error ? cause : new Error(String(cause));
        for (const { query } of group) parts.set(query, error);
      }
    };
    await Promise.all(groupsOf(wanted).map(answer));
    return again;
  };
  const first = (query: MetricQuery): Wanted => {
    const before = known.get(nameOf(query));
    return { query, display: before ? numbersFor(before, asked) : onlyDisplay(asked) };
  };
  // Kinds learned from the first answers also apply to later answers.
  const again = await ask(queries.map(first));
  if (again.length > 0) await ask(again);
  return queries.map(
    (query) => parts.get(query) ?? new Error("the kind of its series keeps changing"),
  );
}

/** Whether a query requests the unmerged series of its metric. */
function isPlain({ group_by, merge, top, bottom }: MetricQuery): boolean {
  return !group_by && !merge && !top && !bottom;
}

/** Groups the queries of one request. */
function groupsOf(wanted: readonly Wanted[]): Wanted[][] {
  const groups = new Map<string, Wanted[]>();
  wanted.forEach((entry, k) => {
    const { query, display } = entry;
    const alone = isPlain(query) ? Math.floor(k / METRICS_MAX) : nameOf(query);
    const key = JSON.stringify([query.tags, display, alone]);
    groups.set(key, [...(groups.get(key) ?? []), entry]);
  });
  return [...groups.values()];
}

function paramsOf(group: readonly Wanted[], { window }: Asked): ChartParams {
  const [first] = group as [Wanted];
  const { query, display } = first;
  const { start, end, resolution, zone } = window;
  const names = group.map((entry) => quoted(entry.query.metric, /,|^"/));
  return {
    ...(group.length > 1 ? { metrics: names.join(",") } : { metric: query.metric }),
    tags: query.tags,
    resolution: resolutionOfApi(resolution),
    start,
    end,
    ...(resolution === "1d" ? { tz: zone } : {}),
    ...(query.group_by ? { group_by: query.group_by } : {}),
    ...(query.merge ? { merge: true } : {}),
    ...(query.top ? { top: query.top } : {}),
    ...(query.bottom ? { bottom: query.bottom } : {}),
    ...withDisplay(display, query),
  };
}

/** Selects a query's part of an answer. */
function answerTo({ metric }: MetricQuery, isShared: boolean, answer: ChartAnswer): ChartAnswer {
  if (!isShared) return answer;
  return { ...answer, series: answer.series.filter((series) => series.metric === metric) };
}

/** Other numbers to request, when the answer shows that the first ones do not fit the kind. */
function betterFor({ query, display }: Wanted, answer: ChartAnswer, asked: Asked) {
  const [first] = answer.series;
  if (!first) return undefined;
  const lines = new Set(answer.series.map(({ tags }) => JSON.stringify(tags))).size;
  const found = { kind: first.kind, lines };
  learn(nameOf(query), found);
  const better = numbersFor(found, asked);
  const isEquivalent =
    better === display || (display === undefined && better === defaultDisplay(first.kind));
  return isEquivalent ? undefined : better;
}

/** Lines are ranked by the drawn number, not by its band. */
function withDisplay(display: string | undefined, query: MetricQuery): Partial<ChartParams> {
  const isRanked = Boolean(query.top ?? query.bottom);
  const by = isRanked && display?.includes(",") ? { by: "avg" } : {};
  return display === undefined ? {} : { display, ...by };
}

/** The number to request when it does not depend on the kind. */
function onlyDisplay({ display }: Asked): string | undefined {
  return display === "avg" || display === "avg_per_sec" || display === "total"
    ? undefined
    : display;
}

function defaultDisplay(kind: Kind): Display {
  return kind === "gauge" ? "avg" : kind === "counter" ? "avg_per_sec" : "total";
}

/** The numbers to request for a known kind. */
function numbersFor({ kind, lines }: Known, asked: Asked): string {
  const { display, frameDisplay } = asked;
  const isOfFrame = display === undefined || display === "avg_per_sec" || display === "total";
  if (!isOfFrame && display !== "avg") return display;
  if (kind === "gauge") {
    if (display === "total") return display;
    return asked.band && lines <= BANDS_MAX ? "avg,min,max" : "avg";
  }
  if (display === "avg") return display;
  return frameDisplay ?? display ?? defaultDisplay(kind);
}
