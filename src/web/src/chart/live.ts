/**
 * A live chart: loads its data when visible, draws it, follows the pointer. Frequent work happens
 * here, outside of components.
 */
import { effect } from "@preact/signals";
import { navigate } from "../app/address";
import { isDark } from "../app/preferences";
import { escapeReordering } from "../model/harmless";
import { clockAt, dateText, timeText, zoneName } from "../model/zone";
import { changeText } from "./compare";
import type { Follower, PointedTime } from "./cursor";
import type { ChartData } from "./data";
import { cellText } from "./heat-buckets";
import { LegendValues } from "./legend";
import { annotationsAt } from "./marks";
import { movedPath, scopeOf } from "./moved-path";
import { Overlay } from "./overlay";
import { Plot } from "./plot";
import { listen, type PointerPlace } from "./pointer";
import { largestOf, registerChart } from "./registry";
import { ChartSignals, paletteKey, type ChartElements } from "./signals";
import { largestText, rowValue, spokenText, tipBand, tipText } from "./slot-text";
import type { MovableThreshold } from "./threshold-drag";
import { nearestFirst, Tip, type Candidate } from "./tip";

/** A chart within this distance of the viewport is loaded. */
const LOAD_WITHIN_PX = 200;
/** A series within this distance of the pointer is the nearest one. */
const NEAR_PX = 40;

export class LiveChart extends ChartSignals implements Follower {
  readonly legend = new LegendValues();
  plot: Plot | undefined;
  /** The threshold that the reader can move. */
  movable: MovableThreshold | undefined;
  private overlay: Overlay | undefined;
  private isInView = false;
  private tip: Tip | undefined;
  private pointedIndex = -2;
  /** The place of the pointer on the area. */
  private pointer: PointerPlace | undefined;
  /** The text of the chart beside this one that was read aloud. */
  private spokenBeside = "";

  /** Starts on these elements; the returned function stops it. */
  mount(elements: ChartElements, fullScreen: () => void): () => void {
    const plot = new Plot(elements.plot);
    const overlay = new Overlay(elements.overlay, plot);
    this.plot = plot;
    this.overlay = overlay;
    this.elements = elements;
    const tip = new Tip(elements.tip);
    this.tip = tip;
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
        onPointer: (place) => (this.pointer = place),
        fullScreen,
        threshold: () => this.movable,
        onStretch: (start, end) => this.openMoved(start, end),
      }),
      () => tip.destroy(),
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
    requestAnimationFrame(() => {
      this.showPointedTime();
      this.frame.cursor.repeat();
    });
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
    const time = data.times[index ?? 0] ?? 0;
    overlay.point(pointed, index, time, isSource);
    this.showNearest(isSource ? this.pointer : undefined);
    // The chart beside this one received values: they are read aloud, too.
    const isSpoken = isSource && pointed.byKeys;
    if (isSpoken && this.besideText(time) !== this.spokenBeside) this.pointedIndex = -2;
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
    this.spokenBeside = this.besideText(at);
    const texts = [values.join(", "), this.spokenBeside].filter(Boolean);
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

  /** Shows the nearest series and the annotations at the pointer; hides them without one. */
  private showNearest(pointer: PointerPlace | undefined): void {
    const pointed = this.frame.cursor.at;
    const { plot, tip } = this;
    const data = this.loader.data.peek();
    const index = pointed && plot ? plot.indexOf(pointed.time) : undefined;
    if (!pointer || !pointed || !plot || !data || index === undefined) {
      this.legend.mark(-1);
      plot?.setNear(-1);
      this.overlay?.setListed(undefined);
      tip?.hide();
      return;
    }
    const { x, y, ...free } = pointer;
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
    const size = { width: left + width, height: top + height };
    tip?.moveTo({ x: left + x, y: top + y, ...size, ...free });
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
