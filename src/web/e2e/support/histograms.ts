/** Histograms of latencies, exported as OpenTelemetry's libraries do, with known observations. */
import type { Tags } from "../../src/api/types";
import { NOW } from "./data";
import type { Daemon } from "./daemon";
import { MINUTE } from "./zones";

/** A bucket is 2^(1/128) wide: percentiles are at most 1 % off. */
const SCALE = 7;

/** Returns the latencies of a minute in seconds: hits and misses of a cache, and a slow period. */
export function latencies(time: number, count = 200): number[] {
  const isSlow = time >= NOW - 50 * MINUTE && time < NOW - 35 * MINUTE;
  return Array.from({ length: count }, (_, k) => {
    const part = (k + 0.5) / count;
    const tail = (1 - part) ** -0.5;
    const wave = 1 + 0.5 * Math.sin((NOW - time) / (11 * MINUTE));
    return (k % 10 < 7 ? 0.004 : 0.06) * tail * wave * (isSlow ? 3 : 1);
  });
}

/** Exports the latencies of each minute of a time range, as a histogram per minute. */
export async function postLatencies(
  daemon: Daemon,
  metric: string,
  tags: Tags,
  minutes: number,
): Promise<void> {
  const times = Array.from({ length: minutes }, (_, k) => NOW - (minutes - k) * MINUTE);
  const attributes = Object.entries(tags).map(([key, stringValue]) => ({
    key,
    value: { stringValue },
  }));
  const dataPoints = times.map((time) => ({ ...pointOf(latencies(time), time), attributes }));
  // 1: each point has only the observations since the last one.
  const exponentialHistogram = { aggregationTemporality: 1, dataPoints };
  const metrics = [{ name: metric, unit: "s", exponentialHistogram }];
  await daemon.post("/v1/metrics", { resourceMetrics: [{ scopeMetrics: [{ metrics }] }] });
}

function pointOf(values: readonly number[], time: number) {
  const indexes = values.map((value) => Math.ceil(Math.log2(value) * 2 ** SCALE) - 1);
  const offset = Math.min(...indexes);
  const bucketCounts = new Array<number>(Math.max(...indexes) - offset + 1).fill(0);
  for (const index of indexes)
    bucketCounts[index - offset] = (bucketCounts[index - offset] ?? 0) + 1;
  const nanos = (millis: number) => `${millis}000000`;
  return {
    startTimeUnixNano: nanos(time - MINUTE),
    timeUnixNano: nanos(time),
    count: String(values.length),
    sum: values.reduce((sum, value) => sum + value, 0),
    scale: SCALE,
    zeroCount: "0",
    positive: { offset, bucketCounts: bucketCounts.map(String) },
  };
}
