/** Objects that people make: dashboards, annotations. */
import type { Display, Tags } from "./series";

/** `/api/v1/dashboards` */
export interface DashboardsAnswer {
  dashboards: DashboardEntry[];
  /** The files of dashboards that are not in use, or that hide a saved dashboard. */
  faults?: DashboardFileFault[];
}

export interface DashboardFileFault {
  file: string;
  message: string;
}

export interface DashboardEntry {
  name: string;
  title: string;
  version: number | null;
  builtin: boolean;
  /** The file of a dashboard that the page cannot change. */
  file?: string;
  changed: number | null;
  folder?: string;
}

/** `/api/v1/dashboards/NAME` */
export interface DashboardAnswer {
  name: string;
  version: number | null;
  changed: number | null;
  builtin: boolean;
  file?: string;
  dashboard: Dashboard;
}

export interface DashboardSaved {
  name: string;
  version: number;
}

export interface Dashboard {
  schema: 1;
  title: string;
  folder?: string;
  range?: string;
  resolution?: string;
  variables: Variable[];
  panels: Panel[];
}

/** A choice above a dashboard that replaces `$name` in its queries. */
export interface Variable {
  name: string;
  /** The tag that provides the values. */
  tag: string;
  metric?: string;
  multi: boolean;
}

export type Panel = ChartPanel | TextPanel | RowPanel;

interface PanelArea {
  id: string;
  title: string;
  /** Position in 12 columns, and rows of 40 pixels. */
  x: number;
  y: number;
  w: number;
  h: number;
  /** The variable for each of whose values the panel is repeated. */
  repeat?: string;
}

/** The forms in which the results of queries are shown. */
export type ValuesKind = "chart" | "stat" | "gauge" | "table" | "bars" | "heatmap" | "states";

/** The number that summarizes a series over the time range. */
export type Reduction = "last" | "avg" | "min" | "max" | "sum";

export type Level = "none" | "good" | "warn" | "bad";

export interface PanelThreshold {
  /** The lowest value of the level; missing for the lowest level. */
  from?: number;
  level: Level;
}

/** A panel with the results of queries. */
export interface ChartPanel extends PanelArea {
  kind: ValuesKind;
  queries: PanelQuery[];
  display?: Display;
  stacked?: boolean;
  log?: boolean;
  unit?: string;
  /** The last value by default; for panels of single values. */
  reduce?: Reduction;
  min?: number;
  max?: number;
  thresholds?: PanelThreshold[];
  /** The name of a dashboard that the panel opens, with the same variables and time range. */
  link?: string;
}

/** A heading that folds the panels below it, up to the next row. */
export interface RowPanel extends PanelArea {
  kind: "row";
  folded?: boolean;
}

export interface TextPanel extends PanelArea {
  kind: "text";
  text: string;
  link?: string;
}

export type PanelQuery = MetricQuery | PromqlQuery;

export interface MetricQuery {
  kind: "metric";
  metric: string;
  /** `name=value` pairs, separated by commas. */
  tags: string;
  group_by?: string;
  /** True if all series, or all series with equal values of `group_by`, are merged. */
  merge?: boolean;
  /** The number of series with the largest values; not together with `bottom`. */
  top?: number;
  bottom?: number;
  /** The query is kept but not drawn. */
  hidden?: boolean;
}

export interface PromqlQuery {
  kind: "promql";
  expression: string;
  /** A name for its series; a tag's value replaces `{{tag}}`. */
  legend?: string;
  hidden?: boolean;
}

/** `/api/v1/annotations` */
export interface AnnotationsAnswer {
  annotations: Annotation[];
  /** Older annotations of the range that the answer leaves out. */
  left_out: number;
}

export interface Annotation {
  id: string;
  time: number;
  end: number | null;
  text: string;
  tags: Tags;
  source: "user" | "agent_restart" | "host_reboot" | "gap";
  author: string;
}

export interface NewAnnotation {
  time?: number;
  end?: number;
  text: string;
  tags?: Tags;
}
