/**
 * The drawing of a chart: uPlot with the page's axes, colours and marks. An update changes only
 * differences, so that a refresh moves nothing that stays.
 */
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { ghostLook, lookOf } from "../model/colours";
import { isolatedPoints, stackValues, type Values } from "../model/stack";
import { Heat } from "./heat";
import { bucketGrid, drawBuckets, type BucketGrid } from "./heat-buckets";
import { drawAbove, drawBeneath, type Marks } from "./marks";
import { drawIncomplete, incompleteGap } from "./open-slot";
import { Axes } from "./plot-axes";
import { percentileBands, stackBands } from "./plot-bands";
import { readColours, withAlpha } from "./plot-colours";
import type { PlotState } from "./plot-state";

/** The maximum number of lines with bands; with more lines, only the nearest one has its band. */
export const BANDS_MAX = 2;

export class Plot {
  private u: uPlot | undefined;
  private state: PlotState | undefined;
  private builtKey = "";
  private size = { width: 0, height: 0 };
  private isolated: number[][] = [];
  private readonly heat = new Heat();
  /** The values of the heat map; the same object until they change. */
  private heatValues: Values[] = [];
  /** The cells of a heat map of histograms. */
  private buckets: BucketGrid | undefined;
  /** The index of the first line among uPlot's series: bands come first. */
  private firstLine = 1;
  /** The series nearest to the pointer. */
  private near = -1;
  /** Called when the plot's area moves or changes size. */
  onArea: () => void = () => undefined;
  /** Called after drawing: scales match the shown state. */
  onDrawn: () => void = () => undefined;

  constructor(private readonly host: HTMLElement) {}

  get area(): { left: number; top: number; width: number; height: number } {
    if (!this.u) return { left: 0, top: 0, width: 0, height: 0 };
    const { left, top, width, height } = this.u.bbox;
    const ratio = uPlot.pxRatio;
    return { left: left / ratio, top: top / ratio, width: width / ratio, height: height / ratio };
  }

  get canvas(): HTMLCanvasElement | undefined {
    return this.u?.ctx.canvas;
  }

  /** The data of uPlot: times, then each series. */
  get drawn(): { times: number[]; series: { key: string; values: Values }[] } {
    const data = this.u?.data ?? [[]];
    const series = this.state?.data.series ?? [];
    return {
      times: data[0] as number[],
      series: series.map(({ key }, k) => ({ key, values: data[this.firstLine + k] as Values })),
    };
  }

  /** Pixels from the left of the area. */
  xOf(time: number): number {
    return this.u?.valToPos(time, "x") ?? 0;
  }

  timeAt(x: number): number {
    return this.u?.posToVal(x, "x") ?? 0;
  }

  /** Pixels from the top of the area to a series' point. */
  yOf(series: number, index: number): number | undefined {
    const value = this.u?.data[this.firstLine + series]?.[index];
    if (value === null || value === undefined || !this.u) return undefined;
    return this.u.valToPos(value, "y");
  }

  /** Pixels from the top of the area to a value. */
  yOfValue(value: number): number | undefined {
    return this.u?.valToPos(value, "y");
  }

  valueAt(y: number): number {
    return this.u?.posToVal(y, "y") ?? 0;
  }

  get height(): number {
    return this.area.height;
  }

  /** The value at a distance from the top of the area, and the cells of a heat map there. */
  cellAt(y: number): { value: number; grid: BucketGrid } | undefined {
    return this.u && this.buckets && { value: this.valueAt(y), grid: this.buckets };
  }

  /** The point nearest to a time. */
  indexOf(time: number): number | undefined {
    const times = this.u?.data[0];
    if (!times?.length || !this.u) return undefined;
    return this.u.valToIdx(time);
  }

  resize(width: number, height: number): void {
    if (width === this.size.width && height === this.size.height) return;
    this.size = { width, height };
    if (this.u) this.u.setSize(this.size);
    else if (this.state) this.update(this.state);
  }

  update(state: PlotState): void {
    const previous = this.state;
    this.state = state;
    if (this.size.width <= 0 || this.size.height <= 0) return;
    const key = rebuildKey(state);
    if (!this.u || key !== this.builtKey) {
      this.builtKey = key;
      this.build();
      return;
    }
    const showsSameSeries = previous?.shown.every((shown, k) => shown === state.shown[k]) ?? false;
    if (!showsSameSeries) this.showSeries(state.shown);
    const dependsOnShown = state.stacked || state.heat;
    if (previous?.data !== state.data || (dependsOnShown && !showsSameSeries)) {
      this.u.setData(this.alignedData(), true);
    } else {
      const { start, end } = state.window;
      this.u.setScale("x", { min: start, max: end });
      this.u.redraw(false, true);
    }
  }

  /** Shows the band of the series nearest to the pointer. */
  setNear(series: number): void {
    if (series === this.near) return;
    this.near = series;
    const { u, state } = this;
    if (state?.heat) {
      // The line of the nearest series is drawn above the heat map.
      u?.redraw(true, false);
      return;
    }
    if (!u || !state || state.stacked || state.data.series.length <= BANDS_MAX) return;
    if (state.data.series.some(({ band, lower }) => band ?? lower)) u.redraw(false, false);
  }

  private showsBand({ data }: PlotState, series: number): boolean {
    return data.series.length <= BANDS_MAX || series === this.near;
  }

  destroy(): void {
    this.u?.destroy();
    this.u = undefined;
  }

  private showSeries(shown: readonly boolean[]): void {
    const u = this.u;
    if (!u) return;
    u.batch(() => {
      for (const [k, isShown] of shown.entries()) {
        for (const index of this.indexesInPlot(k)) {
          if (u.series[index]?.show !== isShown) u.setSeries(index, { show: isShown }, false);
        }
      }
    });
  }

  /** uPlot's series of one chart series: its line, and the edges of its band. */
  private indexesInPlot(series: number): number[] {
    const plotIndexes = [this.firstLine + series];
    const data = this.state?.data.series ?? [];
    if (data[series]?.band && this.firstLine > 1) {
      const bandsBefore = data.slice(0, series).filter(({ band }) => band).length;
      plotIndexes.push(1 + 2 * bandsBefore, 2 + 2 * bandsBefore);
    }
    return plotIndexes;
  }

  private build(): void {
    this.u?.destroy();
    if (!this.state) return;
    const data = this.alignedData();
    this.u = new uPlot(this.options(this.state), data, this.host);
  }

  private alignedData(): uPlot.AlignedData {
    const state = this.state;
    if (!state) return [[]];
    const { data, shown } = state;
    const bands =
      state.stacked || state.heat
        ? []
        : data.series.flatMap(({ band }) => (band ? [band.min, band.max] : []));
    const values = data.series.map(({ values }) => values);
    const lines = state.stacked ? stackValues(values, shown) : values;
    this.firstLine = 1 + bands.length;
    this.isolated = lines.map(isolatedPoints);
    this.heatValues = state.heat
      ? [
          ...values.filter((_, k) => shown[k]),
          ...(state.hasRest ? data.rest : []).map(({ values }) => values),
        ]
      : [];
    this.buckets = state.heat ? bucketGrid(data.series, shown) : undefined;
    return [data.times, ...bands, ...lines];
  }

  private options(state: PlotState): uPlot.Options {
    const { data } = state;
    const colours = readColours();
    const axes = new Axes(
      () => this.state,
      () => this.buckets,
    );
    const looks = state.paletteIndexes.map((index) => lookOf(index, state.dark));
    const bandSeries: uPlot.Series[] = [];
    const bands: uPlot.Band[] = [];
    const lines: uPlot.Series[] = data.series.map((series, k) => {
      const look = looks[k] ?? lookOf(0, state.dark);
      const { colour, dash } = series.ghostOf ? ghostLook(look) : look;
      const show = state.shown[k] ?? true;
      if (series.band && !state.stacked && !state.heat) {
        const first = 1 + bandSeries.length;
        bandSeries.push({ show, points: { show: false } }, { show, points: { show: false } });
        const fill = () => withAlpha(look.colour, this.showsBand(state, k) ? 0.16 : 0);
        bands.push({ series: [first + 1, first], fill });
      }
      return {
        show,
        stroke: colour,
        width: state.stacked ? 1 : 1.5,
        ...(state.stacked ? {} : { dash }),
        gaps: (u, line, _first, _last, gaps) => [
          ...gaps,
          ...incompleteGap(u, line, this.marks().incompleteFrom),
        ],
        points: {
          show: false,
          size: 5,
          fill: colour,
          filter: () => (this.drawsLine(k) ? (this.isolated[k] ?? null) : null),
        },
        ...(state.heat ? { paths: this.nearPaths(k) } : {}),
      };
    });
    if (state.stacked) stackBands(lines, bands, state, looks);
    else if (!state.heat)
      bands.push(...percentileBands(state, looks, this.firstLine, () => this.near));
    return {
      ...this.size,
      ms: 1,
      series: [{}, ...bandSeries, ...lines],
      bands,
      legend: { show: false },
      cursor: { show: false },
      select: { show: false, left: 0, top: 0, width: 0, height: 0 },
      padding: [8, 10, 0, 0],
      scales: { x: axes.x, y: axes.y(state) },
      axes: axes.axisOptions(state, colours),
      hooks: {
        drawClear: [
          (u) => drawBeneath(u, this.marks(), colours),
          (u) => {
            if (this.buckets) drawBuckets(u, this.buckets, state.log, colours.heat);
            else if (state.heat) this.heat.draw(u, this.heatValues, state.log, colours.heat);
          },
        ],
        draw: [
          (u) =>
            drawIncomplete(u, this.firstLine, this.marks().incompleteFrom, (k) =>
              this.drawsLine(k),
            ),
          (u) => drawAbove(u, this.marks(), colours),
          () => this.onDrawn(),
        ],
        setSize: [() => this.onArea()],
        ready: [() => this.onArea()],
      },
    };
  }

  /** Returns true if a series is drawn as a line: on a heat map, only the nearest one. */
  private drawsLine(series: number): boolean {
    return !this.state?.heat || series === this.near;
  }

  private nearPaths(series: number): uPlot.Series.PathBuilder {
    const linear = uPlot.paths.linear?.();
    return (u, at, from, to) =>
      this.drawsLine(series) ? (linear?.(u, at, from, to) ?? null) : null;
  }

  private marks(): Marks {
    return this.state?.marks ?? { incompleteFrom: undefined, annotations: [], thresholds: [] };
  }
}

/** The inputs that need a new plot; everything else is an update. */
function rebuildKey(state: PlotState): string {
  const { data, paletteIndexes, stacked, heat, log, dark } = state;
  const series = data.series.map(({ key, band, lower, unit }) => [
    key,
    band !== undefined,
    lower,
    unit,
  ]);
  return JSON.stringify([
    series,
    paletteIndexes,
    stacked,
    heat,
    log,
    dark,
    stacked ? state.shown : [],
  ]);
}
