/** Series, their values, and searches for them. */

/** The meaning of a series' values. */
export type Kind =
  "gauge" | "counter" | "delta" | "histogram" | "gaugehistogram" | "deltahistogram";

export type Tags = Record<string, string>;

/** An error. */
export interface ErrorAnswer {
  error: string;
  message: string;
}

/** `/api/v1/chart` */
export interface ChartAnswer {
  resolution: string;
  time_zone?: string;
  start: number;
  end: number;
  /** Start of the first slot that is not complete yet. */
  incomplete_from?: number;
  series: ChartSeries[];
  notes: string[];
}

export interface SeriesEntry {
  metric: string;
  tags: Tags;
  kind: Kind;
  unit: string;
}

export interface ChartSeries extends SeriesEntry {
  merged?: number;
  display: Display;
  /** Slot start and value; `null` for an empty slot. */
  points: [number, number | null][];
  /** With `display=distribution`. */
  distribution?: Distribution;
}

/** The observations of a line's histograms, in the same buckets for all slots. */
export interface Distribution {
  /** The lower and upper bound of each bucket, ascending; `null` for an infinite bound. */
  bounds: [number | null, number | null][];
  /** For each point, the number of observations in each bucket; empty without observations. */
  counts: number[][];
}

/** The number shown for a slot. */
export type Display =
  | "avg"
  | "avg_per_sec"
  | "sum_per_sec"
  | "total"
  | "min"
  | "max"
  | "count"
  | "first"
  | "last"
  | "distribution"
  | `p${number}`;

/** `/api/v1/moved`: the series that differ most from the same length of time before. */
export interface MovedAnswer {
  resolution: string;
  before: number;
  start: number;
  end: number;
  compared: number;
  moved: number;
  series: MovedSeries[];
  notes: string[];
}

export interface MovedSeries extends SeriesEntry {
  display: Display;
  /** The rank, in typical deviations. */
  score: number;
  /** `null` for a series that begins. */
  median_before: number | null;
  /** `null` for a series that ends. */
  mean_during: number | null;
  points: [number, number | null][];
}

/** `/api/v1/series` */
export interface SeriesAnswer {
  total: number;
  series: SeriesEntry[];
}

/** `/api/v1/find` */
export interface FindAnswer {
  total: number;
  metrics: FoundMetric[];
}

export interface FoundMetric {
  metric: string;
  kind: Kind;
  unit: string;
  series: number;
}

/** `/api/v1/facets` */
export interface FacetsAnswer {
  series: number;
  /** The number of tags; the answer lists 200 at most. */
  tags_total: number;
  tags: Facet[];
  /** Reasons why no series matches. */
  notes?: string[];
}

export interface Facet {
  name: string;
  values_total: number;
  values: { value: string; series: number }[];
}

/** `/api/v1/query` and `/api/v1/query_range`, in Prometheus' form. */
export interface PromqlAnswer<T> {
  status: "success" | "error";
  data?: T;
  errorType?: string;
  error?: string;
  warnings?: string[];
  infos?: string[];
}

export interface PromqlMatrix {
  resultType: "matrix";
  /** Without `values`, all values of a series are native histograms. */
  result: { metric: Tags; values?: [number, string][]; histograms?: unknown[] }[];
}

export interface PromqlVector {
  resultType: "vector";
  result: { metric: Tags; value?: [number, string]; histogram?: unknown }[];
}
