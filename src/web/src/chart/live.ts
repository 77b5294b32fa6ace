/**
 * A live chart: loads its data when visible, draws it, follows the pointer. Frequent work happens
 * here, outside of components.
 */
import { computed, effect, signal, type ReadonlySignal } from "@preact/signals";
import { isDark } from "../app/preferences";
import { steady } from "../app/steady";
import { escapeReordering } from "../model/harmless";
import { PaletteIndexes, ghostLook, lookOf } from "../model/colours";
import { clockAt, dateText, timeText, zoneName } from "../model/zone";
import { alertLines, thresholdsOf } from "./alert-lines";
import { annotationsOf } from "./annotations";
import { changeText, type Comparison } from "./compare";
import type { Follower, PointedTime } from "./cursor";
import { orderByValue, seriesName, type ChartData, type DrawnSeries } from "./data";
import type { TimeFrame } from "./frame";
import { LINES_MAX } from "./heat";
import { cellText, fitsLogAxis } from "./heat-buckets";
import { LegendValues, type LegendRow } from "./legend";
import { largestText, rowValue, spokenText, tipBand, tipText } from "./slot-text";
import { nearestFirst, Tip, type Candidate } from "./tip";
import { Loader } from "./loader";
import { annotationsAt, type Threshold } from "./marks";
import { Overlay } from "./overlay";
import { BANDS_MAX, Plot } from "./plot";
import { listen } from "./pointer";
import { movedPath, scopeOf } from "./moved-path";
import { largestOf, registerChart } from "./registry";
import type { MovableThreshold } from "./threshold-drag";
import { readState, shownFlags, type ChartState } from "./state";
import type { Annotation } from "../api/types";
import { address, navigate } from "../app/address";
import type { ChartSpec } from "./chart-spec";

/** The elements that are written outside of components. */
export interface ChartElements {
  root: HTMLElement;
  plot: HTMLElement;
  overlay: HTMLElement;
  time: HTMLElement;
  tip: HTMLElement;
  spoken: HTMLElement;
}

/** A chart within this distance of the viewport is loaded. */
const LOAD_WITHIN_PX = 200;
/** The legend of more series is ordered by value. */
const SORTED_FROM = 6;
/** A series within this distance of the pointer is the nearest one. */
const NEAR_PX = 40;

/** A ghost line has the colour of its series. */
const paletteKey = ({ key, ghostOf }: DrawnSeries) => ghostOf ?? key;

export class LiveChart implements Follower {
  readonly spec;
  readonly loader: Loader;
  readonly state: ReadonlySignal<ChartState>;
  /** True if the chart has the cells of histograms: it is their heat map. */
  readonly hasCells: ReadonlySignal<boolean>;
  readonly isStacked: ReadonlySignal<boolean>;
  readonly isLogByDefault: ReadonlySignal<boolean>;
  readonly isLog: ReadonlySignal<boolean>;
  /** The earlier time whose values are drawn as ghost lines. */
  readonly comparison: ReadonlySignal<Comparison | undefined>;
  /** True if the chart draws the difference from the earlier time. */
  readonly isDifference: ReadonlySignal<boolean>;
  /**
   * True if the chart has enough lines to be a heat map, or its spec is one, unless the reader
   * chose otherwise. For histograms the spec alone decides.
   */
  readonly isHeatByDefault: ReadonlySignal<boolean>;
  readonly isHeat: ReadonlySignal<boolean>;
  /** The legend; the same object while all rows are equal. */
  readonly rows: ReadonlySignal<LegendRow[]>;
  /** The order of the legend: by value now when there are many series. */
  readonly order: ReadonlySignal<number[]>;
  readonly thresholds: ReadonlySignal<Threshold[]>;
  /** The annotations of the drawn series. */
  readonly annotations: ReadonlySignal<Annotation[]>;
  readonly legend = new LegendValues();
  plot: Plot | undefined;
  /** The threshold that the reader can move. */
  movable: MovableThreshold | undefined;
  private overlay: Overlay | undefined;
  private elements: ChartElements | undefined;
  private lastOrder: number[] = [];
  private readonly paletteIndexes = new PaletteIndexes();
  private isInView = false;
  private tip: Tip | undefined;
  private pointedIndex = -2;

  constructor(
    readonly frame: TimeFrame,
    spec: ChartSpec,
  ) {
    this.spec = signal(spec);
    const id = computed(() => this.spec.value.id);
    this.state = steady(() => readState(address.value.params, id.value));
    this.comparison = computed(() => {
      const { stacked, compare } = this.state.value;
      const isOfLines = !(stacked ?? this.spec.value.stacked) && !this.hasCells.value;
      return isOfLines ? compare : undefined;
    });
    this.isDifference = computed(
      () => this.comparison.value !== undefined && this.state.value.diff,
    );
    const series = computed(() => this.loader.data.value?.series ?? []);
    const isOfHistograms = computed(() =>
      series.value.every(({ kind }) => kind?.endsWith("histogram")),
    );
    // A heat map of histograms requests their distribution.
    const loadedSpec = computed(() => {
      const { heat } = this.state.value;
      const isPassed = heat !== undefined && isOfHistograms.value;
      return isPassed ? { ...this.spec.value, heat } : this.spec.value;
    });
    this.loader = new Loader(frame, loadedSpec, this.comparison, this.isDifference);
    this.hasCells = computed(() => series.value.some(({ distribution }) => distribution));
    this.isStacked = computed(
      () => !this.hasCells.value && (this.state.value.stacked ?? this.spec.value.stacked),
    );
    this.isLogByDefault = computed(
      () => this.spec.value.log || (this.hasCells.value && fitsLogAxis(series.value)),
    );
    this.isLog = computed(() => this.state.value.log ?? this.isLogByDefault.value);
    this.rows = steady(() => this.legendRows());
    this.isHeatByDefault = computed(() => {
      const restCount = this.loader.data.value?.rest.length ?? 0;
      const shownCount = this.rows.value.filter(({ shown }) => shown).length;
      // The reader chooses between percentiles and the distribution.
      const hasChoice = isOfHistograms.value && this.spec.value.display === undefined;
      const isMany = !hasChoice && shownCount + (this.hasRest ? restCount : 0) > LINES_MAX;
      return !this.isStacked.value && (isMany || this.spec.value.heat);
    });
    this.isHeat = computed(
      () =>
        this.hasCells.value ||
        (!this.isStacked.value && (this.state.value.heat ?? this.isHeatByDefault.value)),
    );
    this.order = steady(() => this.legendOrder());
    this.thresholds = steady(() => this.makeThresholds());
    this.annotations = steady(() => {
      const series = this.loader.data.value?.series ?? [];
      return annotationsOf(frame.annotations.value, series, this.spec.value.queries);
    });
  }

  /** The alerts' thresholds, unless the chart draws derived series. */
  private makeThresholds(): Threshold[] {
    const { queries, derive, thresholds } = this.spec.value;
    const data = this.loader.data.value;
    // Thresholds are of the values, not of their differences.
    if (this.isDifference.value) return [];
    if (thresholds) return [...thresholds];
    if (!data || derive || this.isStacked.value) return [];
    return thresholdsOf(alertLines.value, queries, data.series);
  }

  private legendRows(): LegendRow[] {
    const series = this.loader.data.value?.series ?? [];
    const paletteIndexes = this.paletteIndexes.assign(series.map(paletteKey));
    const shown = shownFlags(
      this.state.value,
      series.map(({ key }) => key),
    );
    return series.map((line, k) => ({
      key: line.key,
      label: line.label,
      fullName: line.metric ? seriesName(line.metric, line.tags) : line.key,
      look: line.ghostOf
        ? ghostLook(lookOf(paletteIndexes[k] ?? 0, isDark.value))
        : lookOf(paletteIndexes[k] ?? 0, isDark.value),
      unit: line.unit,
      shown: shown[k] ?? true,
      hasBand: line.band !== undefined && !this.isStacked.value && series.length <= BANDS_MAX,
    }));
  }

  /** True if a heat map includes the series without rows; a choice of series leaves them out. */
  private get hasRest(): boolean {
    return this.state.value.only.length === 0;
  }

  /** Rows do not move under the mouse. */
  private legendOrder(): number[] {
    const data = this.loader.data.value;
    const series = data?.series ?? [];
    const isSorted = series.length > SORTED_FROM;
    const isHeld = this.elements?.root.querySelector(".legend:hover") ?? null;
    if (isHeld && this.lastOrder.length === series.length) return this.lastOrder;
    this.lastOrder =
      data && isSorted
        ? orderByValue(series, data.times, data.incompleteFrom)
        : series.map((_, k) => k);
    return this.lastOrder;
  }

  /** True for each series that is shown. */
  get shown(): boolean[] {
    return this.rows.peek().map(({ shown }) => shown);
  }

  /** Starts on these elements; the returned function stops it. */
  mount(elements: ChartElements, fullScreen: () => void): () => void {
    const plot = new Plot(elements.plot);
    const overlay = new Overlay(elements.overlay, plot);
    this.plot = plot;
    this.overlay = overlay;
    this.elements = elements;
    this.tip = new Tip(elements.tip);
    plot.onArea = () => overlay.fit();
    plot.onDrawn = () => overlay.redraw();
    const sizeObserver = new ResizeObserver((entries) => {
      const box = entries.at(-1)?.contentRect;
      if (box) plot.resize(Math.round(box.width), Math.round(box.height));
    });
    sizeObserver.observe(elements.plot);
    const nearObserver = new IntersectionObserver(
      (entries) => (this.loader.isNear.value = entries.at(-1)?.isIntersecting ?? false),
      { rootMargin: `${LOAD_WITHIN_PX}px` },
    );
    nearObserver.observe(elements.root);
    // Observers fire after the first paint. One layout of the complete view is cheaper.
    queueMicrotask(() => {
      const { top, bottom } = elements.root.getBoundingClientRect();
      plot.resize(elements.plot.clientWidth, elements.plot.clientHeight);
      if (bottom > -LOAD_WITHIN_PX && top < innerHeight + LOAD_WITHIN_PX)
        this.loader.isNear.value = true;
    });
    const viewObserver = new IntersectionObserver((entries) => {
      this.isInView = entries.at(-1)?.isIntersecting ?? false;
      if (this.isInView) this.showPointedTime();
    });
    viewObserver.observe(elements.root);
    const stops = [
      () => sizeObserver.disconnect(),
      () => nearObserver.disconnect(),
      this.loader.run(),
      effect(() => this.draw()),
      this.frame.cursor.follow(this),
      () => viewObserver.disconnect(),
      registerChart(
        this.spec.peek().title,
        () => plot.drawn,
        (time) => this.largestAt(time),
      ),
      listen(elements.overlay, {
        plot,
        overlay,
        frame: this.frame,
        source: this,
        onPointerHeight: (y, x) => this.showNearest(y, x),
        fullScreen,
        threshold: () => this.movable,
        onStretch: (start, end) => this.openMoved(start, end),
      }),
      () => plot.destroy(),
    ];
    return () => stops.forEach((stop) => stop());
  }

  /** Opens the view of the series that moved in a stretch of time. */
  openMoved(start: number, end: number): void {
    const { zone } = this.frame.window.peek();
    const series = this.loader.data.peek()?.series ?? [];
    navigate(movedPath(scopeOf(series), { start, end, zone }));
  }

  private draw(): void {
    const data = this.loader.data.value;
    const rows = this.rows.value;
    const window = this.frame.window.value;
    const annotations = this.annotations.value;
    const { axisTop } = this.spec.value;
    const thresholds = this.thresholds.value;
    // Draws window and values together: the old window and values stay until new values arrive.
    const isAwaited = this.loader.isAwaited(window);
    const [stacked, log, dark] = [this.isStacked.value, this.isLog.value, isDark.value];
    const heat = this.isHeat.value;
    const elements = this.elements;
    if (!data || isAwaited || !this.plot || !elements) return;
    this.plot.update({
      data,
      window,
      paletteIndexes: this.paletteIndexes.assign(data.series.map(paletteKey)),
      shown: rows.map(({ shown }) => shown),
      stacked,
      heat,
      hasRest: this.hasRest,
      log: log && !stacked,
      axisTop,
      dark,
      marks: { incompleteFrom: data.incompleteFrom, annotations, thresholds },
      isReading: () => this.frame.cursor.at !== null,
    });
    this.overlay?.setLooks(rows.map(({ look, shown }) => ({ colour: look.colour, shown })));
    // The values are written after the legend has its rows.
    requestAnimationFrame(() => this.showPointedTime());
  }

  /** Called when the legend's rows change. */
  readonly attachLegend = (list: HTMLElement | null): void => {
    this.legend.attach(list);
    this.showPointedTime();
  };

  /** The last complete slot, or the slot of the resting time. */
  private lastIndex(data: ChartData): number {
    const end = data.restingAt ?? data.incompleteFrom ?? Infinity;
    for (let index = data.times.length - 1; index >= 0; index--) {
      if ((data.times[index] ?? 0) < end) return index;
    }
    return data.times.length - 1;
  }

  isOnScreen(): boolean {
    return this.isInView;
  }

  move(pointed: PointedTime | null): void {
    const data = this.loader.data.peek();
    const { plot, overlay } = this;
    if (!data || !plot || !overlay) return;
    const index = pointed ? plot.indexOf(pointed.time) : undefined;
    const isSource = pointed?.source === this;
    overlay.point(pointed, index, data.times[index ?? 0] ?? 0, isSource);
    if (!isSource) this.showNearest(undefined);
  }

  writeValues(pointed: PointedTime | null): void {
    const data = this.loader.data.peek();
    const { plot, elements } = this;
    if (!data || !plot || !elements) return;
    const pointedAt = pointed ? plot.indexOf(pointed.time) : undefined;
    const index = pointedAt ?? this.lastIndex(data);
    const key = pointedAt === undefined ? -1 : index;
    if (key === this.pointedIndex) return;
    this.pointedIndex = key;
    const units = data.series.map(({ unit }) => unit);
    this.legend.write((row) => rowValue(data.series[row], index), units);
    const time = data.times[index];
    const text = time === undefined ? "" : this.timeText(time, pointedAt === undefined);
    if (elements.time.textContent !== text) elements.time.textContent = text;
    if (pointed?.byKeys && pointed.source === this) this.announce(index, text);
  }

  /** Shows the pointed time again after a change of drawing or rows. */
  private showPointedTime(): void {
    this.pointedIndex = -2;
    const { at: pointed } = this.frame.cursor;
    this.move(pointed);
    this.writeValues(pointed);
  }

  private timeText(time: number, isLast: boolean): string {
    const { zone, resolution } = this.loader.data.peek()?.window ?? this.frame.window.peek();
    const clock = clockAt(zone, time);
    const text =
      resolution === "1d"
        ? dateText(clock)
        : `${dateText(clock)} ${timeText(clock)} ${zoneName(zone, time)}`;
    return isLast ? `last: ${text}` : text;
  }

  private announce(index: number, time: string): void {
    const series = this.loader.data.peek()?.series ?? [];
    const shown = this.shown;
    const values = series
      .filter((_, k) => shown[k])
      .slice(0, 10)
      .map((line) => spokenText(line, index));
    const at = this.loader.data.peek()?.times[index] ?? 0;
    const texts = [values.join(", "), this.besideText(at)].filter(Boolean);
    const text = escapeReordering(`${time}: ${texts.join("; ")}`);
    if (this.elements) this.elements.spoken.textContent = text;
  }

  /** The largest values at a time, for another chart: a chart off screen is loaded for it. */
  private largestAt(time: number): string {
    this.loader.isNear.value = true;
    const data = this.loader.data.peek();
    return data ? largestText(data, time) : "";
  }

  /** The largest values of the chart beside this one. */
  private besideText(time: number): string {
    const { beside } = this.spec.peek();
    const text = beside === undefined ? "" : largestOf(beside, time);
    return text === "" ? "" : `${beside ?? ""}: ${text}`;
  }

  /** Called with the pointer's position: shows the nearest series and the annotations. */
  private showNearest(y: number | undefined, x = 0): void {
    const pointed = this.frame.cursor.at;
    const { plot, tip } = this;
    const data = this.loader.data.peek();
    const index = pointed && plot ? plot.indexOf(pointed.time) : undefined;
    if (y === undefined || !pointed || !plot || !data || index === undefined) {
      this.legend.mark(-1);
      plot?.setNear(-1);
      this.overlay?.setListed(undefined);
      tip?.hide();
      return;
    }
    const candidates = data.series.flatMap(({ values }, k): Candidate[] => {
      const pointY = this.shown[k] ? plot.yOf(k, index) : undefined;
      const value = values[index];
      if (pointY === undefined || typeof value !== "number") return [];
      return [{ index: k, value, distance: Math.abs(pointY - y) }];
    });
    const { shown, nearest } = nearestFirst(candidates);
    const near = nearest && nearest.distance < NEAR_PX ? nearest.index : -1;
    this.legend.mark(near);
    plot.setNear(near);
    this.overlay?.setListed(shown.map(({ index: k }) => k));
    const rows = this.rows.peek();
    tip?.show({
      time: this.timeText(data.times[index] ?? pointed.time, false),
      rows: shown.map(({ index: k }) => ({
        colour: rows[k]?.look.colour ?? "",
        label: rows[k]?.label ?? "",
        value: tipText(data.series[k], index),
        isNear: k === near,
      })),
      moreCount: candidates.length - shown.length,
      band: [
        changeText(data, data.series[near], index, this.comparison.peek()),
        tipBand(data.series[near], index),
        this.cellText(data, index, y),
        this.besideText(data.times[index] ?? pointed.time),
      ]
        .filter(Boolean)
        .join("\n"),
      annotations: this.annotationText(pointed.time),
    });
    const { left, top, width, height } = plot.area;
    tip?.moveTo(left + x, top + y, left + width, top + height);
  }

  /** The observations in the cell of a heat map of histograms at the pointer. */
  private cellText({ series: [first] }: ChartData, index: number, y: number): string {
    const cell = this.plot?.cellAt(y);
    return cell && first ? cellText(cell.grid, index, cell.value, first.unit) : "";
  }

  private annotationText(time: number): string {
    const { plot } = this;
    if (!plot) return "";
    const tolerance = plot.timeAt(5) - plot.timeAt(0);
    return annotationsAt(this.annotations.peek(), time, tolerance)
      .slice(0, 4)
      .map((annotation) => `${this.timeText(annotation.time, false)}\n${annotation.text}`)
      .join("\n");
  }
}
