/** The state of a live chart that follows from its spec, its data and its address, as signals. */
import { computed, signal, type ReadonlySignal } from "@preact/signals";
import type { Annotation } from "../api/types";
import { address } from "../app/address";
import { isDark } from "../app/preferences";
import { steady } from "../app/steady";
import { PaletteIndexes, ghostLook, lookOf } from "../model/colours";
import { alertLines, thresholdsOf } from "./alert-lines";
import { annotationsOf } from "./annotations";
import type { ChartSpec } from "./chart-spec";
import type { Comparison } from "./compare";
import { orderByValue, seriesName, type DrawnSeries } from "./data";
import type { TimeFrame } from "./frame";
import { LINES_MAX } from "./heat";
import { fitsLogAxis } from "./heat-buckets";
import type { LegendRow } from "./legend";
import { Loader } from "./loader";
import type { Threshold } from "./marks";
import { BANDS_MAX } from "./plot";
import { readState, shownFlags, type ChartState } from "./state";

/** The elements that are written outside of components. */
export interface ChartElements {
  root: HTMLElement;
  plot: HTMLElement;
  overlay: HTMLElement;
  time: HTMLElement;
  tip: HTMLElement;
  spoken: HTMLElement;
}

/** The legend of more series is ordered by value. */
const SORTED_FROM = 6;

/** A ghost line has the colour of its series. */
export const paletteKey = ({ key, ghostOf }: DrawnSeries) => ghostOf ?? key;

export class ChartSignals {
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
  /** The elements, while the chart is mounted. */
  protected elements: ChartElements | undefined;
  private lastOrder: number[] = [];
  protected readonly paletteIndexes = new PaletteIndexes();

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
  protected get hasRest(): boolean {
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
}
