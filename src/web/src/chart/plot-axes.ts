/** The axes of a plot: scales, ticks and labels. */
import uPlot from "uplot";
import { isSame } from "../model/same";
import { timeTicks } from "../model/ticks";
import type { Window } from "../model/timeframe";
import { logTickTexts, tickSteps, tickTexts, topOf, type Unit } from "../model/units";
import type { ChartData } from "./data";
import { extentOf, type BucketGrid } from "./heat-buckets";
import type { PlotState } from "./plot-state";
import type { Colours } from "./plot-colours";

/** Constant width of the axis, so that charts above each other align. */
const Y_AXIS_PX = 64;
const X_AXIS_PX = 38;
/** The smallest distance of two ticks, in pixels. */
const TICK_PX = 76;
const EDGE_PX = 12;
/** A threshold beyond this multiple of the drawn values would flatten them. */
const THRESHOLD_REACH = 3;
const NO_UNIT: Unit = { word: "", perSecond: false };

/** The axes of one plot, which read the shown state on each drawing. */
export class Axes {
  private top: { window: Window | undefined; min: number; max: number } | undefined;

  private rest: { data: ChartData; extent: number[] } | undefined;

  constructor(
    private readonly shown: () => PlotState | undefined,
    private readonly buckets: () => BucketGrid | undefined,
  ) {}

  get x(): uPlot.Scale {
    return {
      time: false,
      range: () => {
        const { start, end } = this.shown()?.window ?? { start: 0, end: 1 };
        return [start, end];
      },
    };
  }

  y(state: PlotState): uPlot.Scale {
    const unit = state.data.series[0]?.unit ?? NO_UNIT;
    if (state.log) {
      return {
        // Logarithmic: a const enum, which cannot be named here.
        // eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment
        distr: 3,
        // Zero has no place on this axis: it is drawn at the bottom.
        clamp: (_u, _value, min) => min,
        range: (_u, min, max) => {
          const [cellMin, cellMax] = this.cellExtent(true);
          if (cellMin !== undefined && cellMax !== undefined) return nearRange(cellMin, cellMax);
          const [restMin = Infinity, restMax = -Infinity] = this.restExtent();
          return logRange(Math.min(min, restMin), Math.max(max, restMax));
        },
      };
    }
    return { range: (_u, min, max) => this.yRange(min, max, unit) };
  }

  private yRange(dataMin: number | null, dataMax: number | null, unit: Unit): [number, number] {
    const others = [...this.restExtent(), ...this.cellExtent(false)];
    const extent = [dataMin, dataMax, ...others].filter((n) => n !== null);
    const reachMax = THRESHOLD_REACH * Math.max(...extent.map(Math.abs), 0);
    const thresholds = (this.shown()?.marks.thresholds ?? []).map(({ value }) => value);
    const numbers = [...extent, ...thresholds.filter((value) => Math.abs(value) <= reachMax)];
    const greatest = Math.max(...numbers, 0);
    const least = Math.min(...numbers, 0);
    const axisTop = this.shown()?.axisTop;
    let max = greatest > 0 || least === 0 ? topOf(greatest, unit) : 0;
    // Sums of shares miss the whole by rounding errors.
    if (axisTop !== undefined && greatest <= axisTop * 1.001) max = axisTop;
    let min = least < 0 ? least * 1.08 : 0;
    const { window, isReading: isRead } = this.shown() ?? {};
    if (this.top && isSame(this.top.window, window) && isRead?.()) {
      max = Math.max(max, this.top.max);
      min = Math.min(min, this.top.min);
    }
    this.top = { window, min, max };
    return [min, max];
  }

  /** The smallest and largest edge of the cells of histograms. */
  private cellExtent(isLog: boolean): number[] {
    const grid = this.buckets();
    return grid ? extentOf(grid, isLog) : [];
  }

  /** The smallest and largest value of a heat map's series that are not lines. */
  private restExtent(): number[] {
    const { heat, hasRest, data } = this.shown() ?? {};
    if (!heat || !hasRest || !data || data.rest.length === 0) return [];
    let rest = this.rest;
    if (rest?.data !== data) {
      let [min, max] = [Infinity, -Infinity];
      for (const { values } of data.rest) {
        for (const value of values) {
          if (typeof value !== "number") continue;
          min = Math.min(min, value);
          max = Math.max(max, value);
        }
      }
      this.rest = rest = { data, extent: min <= max ? [min, max] : [] };
    }
    return rest.extent;
  }

  axisOptions(state: PlotState, colours: Colours): uPlot.Axis[] {
    const unit = state.data.series[0]?.unit ?? NO_UNIT;
    const common: uPlot.Axis = {
      stroke: colours.muted,
      font: `11px ${colours.font}`,
      grid: { stroke: colours.grid, width: 1 },
    };
    const ticksOf = (u: uPlot, min: number, max: number) =>
      timeTicks(
        this.shown()?.window.zone ?? "UTC",
        min,
        max,
        Math.max(Math.floor(u.bbox.width / uPlot.pxRatio / TICK_PX), 2),
      );
    const x: uPlot.Axis = {
      ...common,
      size: X_AXIS_PX,
      gap: 4,
      lineGap: 1.25,
      ticks: { stroke: colours.grid, width: 1, size: 4 },
      splits: (u, _axis, min, max) => ticksOf(u, min, max).map(({ at }) => at),
      values: (u) => {
        const { min = 0, max = 0 } = u.scales["x"] ?? {};
        const right = u.bbox.width / uPlot.pxRatio;
        return ticksOf(u, min, max).map(({ at, text }) =>
          // A label that the edge would cut off is left out.
          u.valToPos(at, "x") > right - EDGE_PX ? "" : text,
        );
      },
    };
    const y: uPlot.Axis = {
      ...common,
      size: Y_AXIS_PX,
      gap: 6,
      space: 34,
      ticks: { show: false },
      ...(state.log
        ? { grid: { ...common.grid, filter: (_u: uPlot, splits: number[]) => decadesOf(splits) } }
        : { incrs: tickSteps(unit) }),
      values: (_u, splits) => (state.log ? logTickTexts(splits, unit) : tickTexts(splits, unit)),
    };
    return [x, y];
  }
}

function logRange(min: number | null, max: number | null): [number, number] {
  if (min === null || max === null || max <= 0) return [1, 10];
  const low = 10 ** Math.floor(Math.log10(min > 0 ? min : max / 1000));
  const high = 10 ** Math.ceil(Math.log10(max));
  return high > low ? [low, high] : [low, low * 10];
}

/** The powers of ten among ticks: a line for each tick would hide the cells of a heat map. */
function decadesOf(splits: readonly number[]): (number | null)[] {
  const isDecade = (split: number) => {
    const power = Math.log10(split);
    return Math.abs(power - Math.round(power)) < 1e-9;
  };
  return splits.filter(isDecade).length < 2
    ? [...splits]
    : splits.map((split) => (isDecade(split) ? split : null));
}

/** A logarithmic range that ends at 1, 2 or 5 times a power of ten. */
function nearRange(min: number, max: number): [number, number] {
  const steps = [1, 2, 5, 10];
  const [minPower, maxPower] = [min, max].map((edge) => 10 ** Math.floor(Math.log10(edge)));
  const low = steps.findLast((step) => step * (minPower ?? 1) <= min * 1.001) ?? 1;
  const high = steps.find((step) => step * (maxPower ?? 1) >= max * 0.999) ?? 10;
  return [low * (minPower ?? 1), high * (maxPower ?? 1)];
}
