/** Single values of series, and their levels. Pure. */
import type { Level, PanelThreshold, Reduction } from "../../../api/types";
import type { ChartData, DrawnSeries } from "../../../chart/data";
import { completeCount } from "../../../chart/open-slot";
import type { Values } from "../../../model/stack";

/** A series with the number that summarizes it. */
export interface ReducedSeries {
  series: DrawnSeries;
  value: number | undefined;
  level: Level;
}

export const REDUCTIONS: readonly { value: Reduction; label: string }[] = [
  { value: "last", label: "Last" },
  { value: "avg", label: "Average" },
  { value: "min", label: "Min" },
  { value: "max", label: "Max" },
  { value: "sum", label: "Sum" },
];

/** The number of the complete slots; `undefined` without a value. */
export function reduced(
  values: Values,
  complete: number,
  reduction: Reduction,
): number | undefined {
  const numbers = values
    .slice(0, complete)
    .filter((value): value is number => typeof value === "number");
  if (numbers.length === 0) return undefined;
  const sum = numbers.reduce((total, value) => total + value, 0);
  switch (reduction) {
    case "last":
      return numbers.at(-1);
    case "avg":
      return sum / numbers.length;
    case "min":
      return numbers.reduce((least, value) => Math.min(least, value));
    case "max":
      return numbers.reduce((most, value) => Math.max(most, value));
    case "sum":
      return sum;
  }
}

/** The level of a value: that of the last threshold that it reaches. */
export function levelOf(
  value: number | null | undefined,
  thresholds: readonly PanelThreshold[] = [],
): Level {
  if (typeof value !== "number") return "none";
  return thresholds.findLast(({ from = -Infinity }) => value >= from)?.level ?? "none";
}

interface Options {
  reduce?: Reduction | undefined;
  thresholds?: readonly PanelThreshold[] | undefined;
}

export function reduceAll(data: ChartData, { reduce = "last", thresholds }: Options) {
  // Without a complete slot, the values so far count.
  const complete = completeCount(data.times, data.incompleteFrom) || data.times.length;
  return data.series.map((series): ReducedSeries => {
    const value = reduced(series.values, complete, reduce);
    return { series, value, level: levelOf(value, thresholds) };
  });
}

/** The ends of the scale of a gauge: those of the panel, or those that the unit suggests. */
export function scaleOf(
  found: readonly ReducedSeries[],
  { min, max }: { min?: number | undefined; max?: number | undefined },
): { min: number; max: number } {
  const values = found.flatMap(({ value }) => (value === undefined ? [] : [value]));
  const { word, perSecond } = found[0]?.series.unit ?? { word: "", perSecond: false };
  const isShare = word === "ratio" || (perSecond && word === "seconds");
  const whole = isShare ? 1 : word === "percent" ? 100 : Math.max(...values, 0);
  const low = min ?? Math.min(...values, 0);
  const high = max ?? whole;
  return { min: low, max: high > low ? high : low + 1 };
}

/** The part of a scale below a value, from 0 to 1. */
export function shareOf(value: number | undefined, { min, max }: { min: number; max: number }) {
  return value === undefined ? 0 : Math.min(Math.max((value - min) / (max - min), 0), 1);
}
