/** The stretches of time in which a series has one state. Pure. */
import type { Level, PanelThreshold } from "../../../api/types";
import type { Values } from "../../../model/stack";
import { levelOf } from "./reduce";

export interface StateRun {
  start: number;
  end: number;
  value: number;
  level: Level;
}

/** The levels of a series of zeros and ones, such as `up`. */
const UP_OR_DOWN: readonly PanelThreshold[] = [{ level: "bad" }, { from: 1, level: "good" }];

/** The thresholds of a panel, or those that the values suggest. */
export function thresholdsFor(
  series: readonly { values: Values }[],
  thresholds: readonly PanelThreshold[] | undefined,
): readonly PanelThreshold[] {
  if (thresholds && thresholds.length > 0) return thresholds;
  const isUpOrDown = series.every(({ values }) =>
    values.every((value) => typeof value !== "number" || value === 0 || value === 1),
  );
  return isUpOrDown ? UP_OR_DOWN : [];
}

/** Neighbouring slots of one level; without levels, of one value. A gap ends a run. */
export function stateRuns(
  times: readonly number[],
  values: Values,
  endOfLast: number,
  thresholds: readonly PanelThreshold[],
): StateRun[] {
  const runs: StateRun[] = [];
  times.forEach((start, k) => {
    const value = values[k];
    if (typeof value !== "number") return;
    const level = levelOf(value, thresholds);
    const end = times[k + 1] ?? endOfLast;
    const last = runs.at(-1);
    const isSame = thresholds.length > 0 ? last?.level === level : last?.value === value;
    if (last && isSame && last.end === start) last.end = end;
    else runs.push({ start, end, value, level });
  });
  return runs;
}
