/** When alerts of a rule were pending and fired, from the series that tell it. */
import { api } from "../../api/client";
import type { AlertingRule, PromqlMatrix, Tags } from "../../api/types";

/** A stretch in which an alert was in one state. */
export interface Episode {
  /** Which alert, in which state. */
  key: string;
  labels: Tags;
  state: string;
  start: number;
  /** `undefined` while it lasts. */
  end: number | undefined;
  /** What was measured when it began, where that is known. */
  value: string | undefined;
}

/** Steps of one question, at most. */
const STEPS_MAX = 5000;
/** What tells states from each other, and is no label of an alert. */
const OWN_LABELS = ["__name__", "alertname", "alertstate"];

/** How often alerts are looked at over a stretch, in milliseconds. */
export function stepOf(length: number, interval: number): number {
  return Math.max(Math.ceil(length / STEPS_MAX / interval), 1) * interval;
}

/** Stretches without a gap, the newest first. `values` are those of the expression at the same times. */
export function episodesOf(
  states: PromqlMatrix,
  values: PromqlMatrix,
  { step, end }: { step: number; end: number },
): Episode[] {
  const measured = values.result.map((one) => ({
    labels: Object.entries(one.metric).filter(([name]) => name !== "__name__"),
    at: new Map(one.values.map(([seconds, text]) => [Math.round(seconds * 1000), text])),
  }));
  const episodes = states.result.flatMap(({ metric, values: seen }) => {
    const labels = Object.fromEntries(
      Object.entries(metric).filter(([name]) => !OWN_LABELS.includes(name)),
    );
    // An alert has the labels of its series, and those of its rule.
    const own = measured.find((one) => one.labels.every(([name, text]) => labels[name] === text));
    const stretches: { start: number; last: number }[] = [];
    for (const [seconds] of seen) {
      const at = Math.round(seconds * 1000);
      const before = stretches.at(-1);
      if (before && at - before.last <= step) before.last = at;
      else stretches.push({ start: at, last: at });
    }
    return stretches.map(({ start, last }) => ({
      key: JSON.stringify(metric),
      labels,
      state: metric["alertstate"] ?? "",
      start,
      end: last + step > end ? undefined : last + step,
      value: own?.at.get(start),
    }));
  });
  return episodes.sort((a, b) => b.start - a.start);
}

export interface Stretch {
  length: number;
  /** Of the evaluations. */
  interval: number;
  now: number;
}

/** What became of the alerts of a rule. */
export async function loadHistory(
  rule: AlertingRule,
  { length, interval, now }: Stretch,
  signal: AbortSignal,
): Promise<Episode[]> {
  const step = stepOf(length, interval);
  const end = Math.floor(now / step) * step;
  const asked = { start: (end - length) / 1000, end: end / 1000, step: step / 1000 };
  const ask = async (query: string) => {
    const { data, error } = await api.queryRange({ query, ...asked }, signal);
    if (!data) throw new Error(error ?? "there was no answer");
    return data;
  };
  // With longer steps also what was over between two of them.
  const alerts = `ALERTS{alertname=${JSON.stringify(rule.name)}}`;
  const none: PromqlMatrix = { resultType: "matrix", result: [] };
  const [states, values] = await Promise.all([
    ask(step > interval ? `max_over_time(${alerts}[${step / 1000}s])` : alerts),
    // An expression that cannot be evaluated any more takes no history with it.
    ask(rule.query).catch(() => none),
  ]);
  return episodesOf(states, values, { step, end });
}
