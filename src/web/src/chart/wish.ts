/** What a chart is asked to show. */
import type { Display, PanelQuery } from "../api/types";
import type { FrameDisplay, Window } from "../model/timeframe";
import type { ChartData, Failure } from "./data";
import type { Threshold } from "./marks";
import { slug } from "./state";

export interface WishProps {
  /** Its name in the address; made of the title by default. Unique on a page. */
  id?: string;
  title: string;
  queries: readonly PanelQuery[];
  /** Which number is shown; the kind's own by default. */
  display?: Display | undefined;
  stacked?: boolean | undefined;
  log?: boolean | undefined;
  /** Where the axis ends, unless numbers are beyond: what all of them are parts of. */
  axisTop?: number | undefined;
  /** Instead of the unit that the series have. */
  unit?: string | undefined;
  /** Whether gauges have a band from their least to their greatest. */
  band?: boolean | undefined;
  threshold?: Threshold | undefined;
  /** Tags that name series, also where all have the same. */
  labels?: readonly string[] | undefined;
  /** Always the same. */
  derive?: Derive | undefined;
}

/** Makes other series of those that are loaded. */
export interface Derive {
  series: (data: ChartData) => ChartData;
  /**
   * The same for one metric in PromQL, of the expressions that `of` gives of the chart's metrics;
   * `undefined` for one that is not drawn.
   */
  expression: (metric: string, of: (metric: string) => string) => string | undefined;
}

export interface ChartWish {
  id: string;
  title: string;
  queries: readonly PanelQuery[];
  display: Display | undefined;
  stacked: boolean;
  log: boolean;
  axisTop: number | undefined;
  unit: string | undefined;
  band: boolean;
  threshold: Threshold | undefined;
  labels: readonly string[] | undefined;
  derive: Derive | undefined;
}

export function wishOf(props: WishProps): ChartWish {
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
    threshold: props.threshold,
    labels: props.labels,
    derive: props.derive,
  };
}

/** What of a wish the daemon is asked for. */
export type Question = Pick<ChartWish, "queries" | "display" | "unit" | "band" | "labels">;

export function questionOf({ queries, display, unit, band, labels }: ChartWish): Question {
  return { queries, display, unit, band, labels };
}

/** What the chart itself wants, and where. */
export interface Asked extends Question {
  window: Window;
  /** What the reader chose for all charts. */
  frameDisplay: FrameDisplay | undefined;
  /** Told which queries were not answered, each time that all are through. */
  onFailures?: ((failures: Failure[]) => void) | undefined;
}
