/** The content of a chart, as views request it. */
import type { Display, PanelQuery } from "../api/types";
import type { FrameDisplay, Window } from "../model/timeframe";
import type { ChartData, Failure } from "./data";
import type { Threshold } from "./marks";
import { slug } from "./state";

export interface ChartSpecProps {
  /** The name of the chart in the address, unique on a page; derived from the title by default. */
  id?: string;
  title: string;
  queries: readonly PanelQuery[];
  /** The shown number; the kind's own by default. */
  display?: Display | undefined;
  stacked?: boolean | undefined;
  log?: boolean | undefined;
  /** The end of the axis unless values exceed it: the whole of all parts. */
  axisTop?: number | undefined;
  /** Replaces the unit of the series. */
  unit?: string | undefined;
  /** True if gauges have a band from min to max. */
  band?: boolean | undefined;
  thresholds?: readonly Threshold[] | undefined;
  /** The title of another chart on the page, whose largest values the pointer shows too. */
  beside?: string | undefined;
  /** True for a heat map, unless the reader chooses lines. */
  heat?: boolean | undefined;
  /** Tags that label series, even when all are equal. */
  labels?: readonly string[] | undefined;
  /** True if expressions are evaluated at times after now, too. */
  isAhead?: boolean | undefined;
  /** A derivation of the drawn series; the object is a constant. */
  derive?: Derive | undefined;
}

/** Derives other series from the loaded ones. */
export interface Derive {
  series: (data: ChartData) => ChartData;
  /**
   * The derivation for a metric in PromQL, built from the expressions that `of` returns;
   * `undefined` for a metric that is not drawn.
   */
  expression: (metric: string, of: (metric: string) => string) => string | undefined;
}

export interface ChartSpec {
  id: string;
  title: string;
  queries: readonly PanelQuery[];
  display: Display | undefined;
  stacked: boolean;
  log: boolean;
  axisTop: number | undefined;
  unit: string | undefined;
  band: boolean;
  thresholds: readonly Threshold[] | undefined;
  beside: string | undefined;
  heat: boolean;
  labels: readonly string[] | undefined;
  isAhead: boolean;
  derive: Derive | undefined;
}

export function specOf(props: ChartSpecProps): ChartSpec {
  return {
    id: props.id ?? slug(props.title),
    title: props.title,
    queries: props.queries,
    display: props.display,
    stacked: props.stacked ?? false,
    log: props.log ?? false,
    axisTop: props.axisTop,
    unit: props.unit,
    band: props.band ?? true,
    thresholds: props.thresholds,
    beside: props.beside,
    heat: props.heat ?? false,
    labels: props.labels,
    isAhead: props.isAhead ?? false,
    derive: props.derive,
  };
}

/** The part of a spec that decides the request. */
export type DataSpec = Pick<
  ChartSpec,
  "queries" | "display" | "unit" | "band" | "heat" | "labels" | "isAhead"
>;

export function dataSpecOf(spec: ChartSpec): DataSpec {
  const { queries, display, unit, band, heat, labels, isAhead } = spec;
  return { queries, display, unit, band, heat, labels, isAhead };
}

/** A request for the data of a chart in a window. */
export interface ChartRequest extends DataSpec {
  window: Window;
  /** The reader's choice for all charts. */
  frameDisplay: FrameDisplay | undefined;
  /** Called with the failed queries after each load. */
  onFailures?: ((failures: Failure[]) => void) | undefined;
}
