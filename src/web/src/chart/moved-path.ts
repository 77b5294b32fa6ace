/** Addresses of the view of series that moved. Pure. */
import type { Tags } from "../api/types";
import { quoteIfNeeded } from "../model/quoted";
import { HOST_TAGS } from "./labels";

/** The selections that the view offers; a reader starts with the first one that is present. */
export interface MovedScope {
  /** A tag of all series, such as `host=web1`. */
  tags?: string | undefined;
  metric?: string | undefined;
}

interface Stretch {
  start: number;
  end: number;
  zone?: string;
}

/** The host and the metric that all these series share. */
export function scopeOf(series: readonly { metric: string; tags: Tags }[]): MovedScope {
  const shared = (read: (line: { metric: string; tags: Tags }) => string | undefined) => {
    const values = new Set(series.map(read));
    const [value] = values;
    return values.size === 1 && value ? value : undefined;
  };
  const tag = HOST_TAGS.find((name) => shared(({ tags }) => tags[name]) !== undefined);
  const host = tag && shared(({ tags }) => tags[tag]);
  return {
    tags: tag && host && `${tag}=${quoteIfNeeded(host, /,|^"/)}`,
    metric: shared(({ metric }) => metric),
  };
}

export function movedPath({ tags, metric }: MovedScope, { start, end, zone }: Stretch): string {
  const params = new URLSearchParams();
  if (tags) params.set("tags", tags);
  if (metric) params.set("metric", metric);
  params.set("start", String(Math.round(start)));
  params.set("end", String(Math.round(end)));
  if (zone) params.set("tz", zone);
  return `/moved?${params.toString()}`;
}
