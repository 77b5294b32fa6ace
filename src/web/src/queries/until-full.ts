/** The PromQL that asks when file systems are full and memory is exhausted, and its answer. Pure. */
import type { PromqlVector } from "../api/types";
import type { UntilFull } from "../model/until-full";

/** The window whose trend and season is continued. */
export const FORECAST_WINDOW = "21d";
/** A file system without a sample in this window is no longer mounted. */
const PRESENT = "1h";
/** The label that tells the quantiles of one answer apart. */
const QUANTILE = "quantile";
const QUANTILES = { early: "0.1", median: "0.5", late: "0.9" } as const;

export const FREE = "disk_partition_space_free";
export const AVAILABLE = "system_memory_available";

/** Matchers of tags, in braces. */
export function matchersOf(tags: ReadonlyMap<string, string>): string {
  const matchers = [...tags].map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return `{${matchers.join(", ")}}`;
}

/**
 * One expression for all file systems, with each quantile. A file system without free space, or
 * mounted read-only, does not fill up.
 */
export function fileSystemsQuery(matchers: string): string {
  const sameMount = "on (host, mount)";
  return (
    `(${quantilesOf(`${FREE}${matchers}`)}) ` +
    `and ${sameMount} (last_over_time(${FREE}${matchers}[${PRESENT}]) > 0) ` +
    `unless ${sameMount} (last_over_time(disk_partition_read_only${matchers}[${PRESENT}]) == 1)`
  );
}

/** The expression for the file systems and the memory of a host. */
export function resourcesQuery(matchers: string): string {
  const memory = `${AVAILABLE}${matchers}`;
  return (
    `(${fileSystemsQuery(matchers)}) or ` +
    `((${quantilesOf(memory)}) and on (host) last_over_time(${memory}[${PRESENT}]) > 0)`
  );
}

function quantilesOf(selector: string): string {
  return Object.values(QUANTILES)
    .map((q) => {
      const forecast = `forecast_until(${selector}[${FORECAST_WINDOW}], 0, ${q})`;
      return `label_replace(${forecast}, "${QUANTILE}", "${q}", "", "")`;
    })
    .join(" or ");
}

/** The resources of an answer that have a median, those that run out first at the beginning. */
export function untilFullOf(vector: PromqlVector): UntilFull[] {
  const found = new Map<string, Partial<UntilFull>>();
  for (const { metric, value } of vector.result) {
    const { host, mount, [QUANTILE]: quantile, ...tags } = metric;
    const field = fieldOf(quantile);
    if (host === undefined || field === undefined || value === undefined) continue;
    const key = JSON.stringify([host, mount, Object.entries(tags).sort()]);
    const until = found.get(key) ?? { host, mount };
    until[field] = Number(value[1]) * 1000;
    found.set(key, until);
  }
  return [...found.values()]
    .filter((until): until is UntilFull => until.median !== undefined)
    .sort((a, b) => a.median - b.median);
}

function fieldOf(quantile: string | undefined): "early" | "median" | "late" | undefined {
  return (["early", "median", "late"] as const).find((name) => QUANTILES[name] === quantile);
}
