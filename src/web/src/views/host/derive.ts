/**
 * Series derived from other series, such as shares of a total or times of one operation, and the
 * PromQL of these series for rules.
 */
import type { ChartData, DrawnSeries } from "../../chart/data";
import type { Derive } from "../../chart/chart-spec";
import { isSame } from "../../model/same";
import type { Values } from "../../model/stack";

const PERCENT = { word: "percent", perSecond: false };
const SECONDS = { word: "seconds", perSecond: false };

type Slot = number | null | undefined;

function combineValues(
  a: Values,
  b: Values,
  make: (a: number, b: number) => number | null,
): Values {
  return a.map((left, i): Slot => {
    const right = b[i];
    if (left === undefined || right === undefined) return undefined;
    return left === null || right === null ? null : make(left, right);
  });
}

function lastWord(metric: string): string {
  return metric.split("_").at(-1) ?? metric;
}

/**
 * The times of all states as percent of their sum, which is the time of all cores. Idle time, the
 * rest up to 100, is not drawn.
 */
export function sharesOf(metrics: readonly string[]): Derive {
  return {
    series: shares,
    expression: (metric, of) =>
      isIdle(metric) ? undefined : `100 * ${of(metric)} / (${metrics.map(of).join(" + ")})`,
  };
}

const isIdle = (metric: string) => metric.endsWith("_idle");

function shares(data: ChartData): ChartData {
  const sums = data.times.map((_, i) =>
    data.series.reduce((sum, { values }) => sum + (values[i] ?? 0), 0),
  );
  const series = data.series
    .filter(({ metric }) => !isIdle(metric))
    .map((line) => ({
      ...line,
      label: lastWord(line.metric),
      unit: PERCENT,
      values: combineValues(line.values, sums, (value, sum) =>
        sum > 0 ? (100 * value) / sum : null,
      ),
    }));
  return { ...data, series };
}

/** Seconds per second as percent of the time. */
export const percent: Derive = {
  series: percentOf,
  expression: (metric, of) => `100 * ${of(metric)}`,
};

function percentOf(data: ChartData): ChartData {
  const series = data.series.map((line) => ({
    ...line,
    unit: PERCENT,
    values: line.values.map((value): Slot => (typeof value === "number" ? value * 100 : value)),
  }));
  return { ...data, series };
}

/**
 * The mean time of an operation: the time spent, divided by the operations. Without operations
 * there is no value.
 */
export const byOperation: Derive = {
  series: timeOfOperations,
  expression: (metric, of) =>
    isTime(metric) ? `${of(metric)} / ${of(operationsOf(metric))}` : undefined,
};

const isTime = (metric: string) => metric.includes("_latency_");
const operationsOf = (time: string) => time.replace("_latency_", "_iops_");

function timeOfOperations(data: ChartData): ChartData {
  const find = (metric: string, like: DrawnSeries) =>
    data.series.find((line) => line.metric === metric && isSame(line.tags, like.tags));
  const series = data.series
    .filter(({ metric }) => isTime(metric))
    .flatMap((time): DrawnSeries[] => {
      const operations = find(operationsOf(time.metric), time);
      if (!operations) return [];
      const values = combineValues(time.values, operations.values, (a, b) =>
        b > 0 ? a / b : null,
      );
      const label = `${time.tags["disk"] ?? ""} ${lastWord(time.metric)}`.trim();
      return [{ ...time, label, unit: SECONDS, values }];
    });
  return { ...data, series };
}
