/** Metrics grouped by the first word of their names. */
import type { SeriesEntry } from "../../api/types";

export interface MetricCount {
  metric: string;
  /** The number of series. */
  series: number;
}

export interface Group {
  word: string;
  metrics: MetricCount[];
}

/** The part of a name before the first `_`, `.`, `:`, `/` or `-`. */
export function firstWord(metric: string): string {
  return /^[^_.:/-]+/.exec(metric)?.[0] ?? metric;
}

/** Groups and their metrics, each sorted by name. */
export function groupsOf(series: readonly SeriesEntry[]): Group[] {
  const counts = new Map<string, number>();
  for (const { metric } of series) counts.set(metric, (counts.get(metric) ?? 0) + 1);
  const groups = new Map<string, MetricCount[]>();
  for (const metric of [...counts.keys()].sort()) {
    const word = firstWord(metric);
    const group = groups.get(word) ?? [];
    group.push({ metric, series: counts.get(metric) ?? 0 });
    groups.set(word, group);
  }
  return [...groups].map(([word, metrics]) => ({ word, metrics }));
}

/** The groups, limited to metrics whose names contain every word of a text. */
export function matching(groups: readonly Group[], text: string): Group[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = ({ metric }: MetricCount) =>
    words.every((word) => metric.toLowerCase().includes(word));
  return groups
    .map(({ word, metrics }) => ({ word, metrics: metrics.filter(matches) }))
    .filter(({ metrics }) => metrics.length > 0);
}
