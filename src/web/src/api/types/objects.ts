/** Objects that people make: dashboards, annotations. */
import type { Display, Tags } from "./series";

/** `/api/v1/dashboards` */
export interface DashboardsAnswer {
  dashboards: DashboardEntry[];
}

export interface DashboardEntry {
  name: string;
  title: string;
  version: number | null;
  builtin: boolean;
  changed: number | null;
}

/** `/api/v1/dashboards/NAME` */
export interface DashboardAnswer {
  name: string;
  version: number | null;
  changed: number | null;
  builtin: boolean;
  dashboard: Dashboard;
}

export interface DashboardSaved {
  name: string;
  version: number;
}

export interface Dashboard {
  schema: 1;
  title: string;
  range?: string;
  resolution?: string;
  variables: Variable[];
  panels: Panel[];
}

/** A value that is chosen on top of a dashboard, and stands for `$name` in its queries. */
export interface Variable {
  name: string;
  /** The tag whose values there are to choose from. */
  tag: string;
  metric?: string;
  multi: boolean;
}

export type Panel = ChartPanel | TextPanel;

interface PanelPlace {
  id: string;
  title: string;
  /** Of 12 columns, and rows of 40 pixels. */
  x: number;
  y: number;
  w: number;
  h: number;
}

export interface ChartPanel extends PanelPlace {
  kind: "chart";
  queries: PanelQuery[];
  display?: Display;
  stacked?: boolean;
  log?: boolean;
  unit?: string;
}

export interface TextPanel extends PanelPlace {
  kind: "text";
  text: string;
}

export type PanelQuery = MetricQuery | PromqlQuery;

export interface MetricQuery {
  kind: "metric";
  metric: string;
  /** `name=value` pairs between commas. */
  tags: string;
  group_by?: string;
  /** All series as one; `group_by` says more. */
  merge?: boolean;
  /** The first so many series; not with `bottom`. */
  top?: number;
  bottom?: number;
  /** Kept, and not drawn. */
  hidden?: boolean;
}

export interface PromqlQuery {
  kind: "promql";
  expression: string;
  /** A name for its series; `{{tag}}` stands for a tag's value. */
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
}

export interface NewAnnotation {
  time?: number;
  end?: number;
  text: string;
  tags?: Tags;
}
