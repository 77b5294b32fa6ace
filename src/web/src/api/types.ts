/**
 * The types of the daemon's answers, and of what is sent to it: the one place where they are said.
 * Times are Unix milliseconds.
 */
export type * from "./alerting-types";

/** How the values of a series are to be read. */
export type Kind = "gauge" | "counter" | "delta";

export type Tags = Record<string, string>;

/** What goes wrong, as the daemon says it. */
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
  /** Start of the first slot that is not over yet. */
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
  /** Slot start, and its number; `null` where the slot is empty. */
  points: [number, number | null][];
}

/** Which number of a slot is shown. */
export type Display =
  "avg" | "avg_per_sec" | "sum_per_sec" | "total" | "min" | "max" | "count" | "first" | "last";

/** `/api/v1/series` */
export interface SeriesAnswer {
  total: number;
  series: SeriesEntry[];
}

/** `/api/v1/hosts` */
export interface HostsAnswer {
  now: number;
  late_after_ms: number;
  down_after_ms: number;
  totals: { up: number; late: number; down: number };
  hosts: Host[];
}

export type HostState = "up" | "late" | "down";

export interface Host {
  host: string;
  state: HostState;
  /** When its last ping came. */
  pinged: number;
  first_seen: number;
  /** When it was started, where an agent knows. */
  booted: number | null;
  tags: Tags;
  version: string;
  agents: HostAgent[];
}

export interface HostAgent {
  agent: string;
  program: string;
  version: string;
  started: number;
  pinged: number;
  interval_ms: number;
  state: HostState;
  /** How far its clock is ahead of the daemon's. */
  silent_ms: number;
  skew_ms: number;
}

/** `/api/v1/hosts/sparklines`: the last hour of all hosts. */
export interface SparklinesAnswer {
  start: number;
  step_ms: number;
  points: number;
  hosts: Record<string, HostLines>;
}

export interface HostLines {
  /** Percent. */
  cpu?: Spark;
  /** Percent. */
  memory?: Spark;
  /** Percent used of the fullest file system. */
  disk?: Spark;
  /** Bytes a second, in and out. */
  network?: Spark;
  /** The fullest file system. */
  filesystem?: { mount: string; used_percent: number };
}

/** A line of coarse points: `.` is none, `0-9A-Za-z` are 0 to 61 parts of `max`. */
export interface Spark {
  last: number | null;
  max: number;
  line: string;
}

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
  /** How many tags there are; at most 200 are told. */
  tags_total: number;
  tags: Facet[];
  /** Why no series matches. */
  notes?: string[];
}

export interface Facet {
  name: string;
  values_total: number;
  values: { value: string; series: number }[];
}

/** `/api/v1/query` and `/api/v1/query_range`, Prometheus' form. */
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
  result: { metric: Tags; values: [number, string][] }[];
}

export interface PromqlVector {
  resultType: "vector";
  result: { metric: Tags; value: [number, string] }[];
}

/** `/api/v1/storage` */
export interface StorageAnswer {
  now: number;
  data_dir: string;
  bytes: number;
  /** Null when the system does not say. */
  disk: { free: number; total: number } | null;
  series: number;
  granularities: StoredGranularity[];
  /** Bytes and records that wait for a checkpoint, and what the file takes. */
  journal: { bytes: number; bytes_max: number; records: number; file_bytes: number };
  head: { bytes: number };
  catalog: { bytes: number; bytes_max: number };
  objects: { bytes: number };
  preallocation: { enabled: boolean; documents_ahead: number | null; until: number | null };
  checkpoints: Checkpoint[];
  damaged: string[];
}

export interface StoredGranularity {
  name: string;
  slot_ms: number;
  retention: string;
  partitions: Partition[];
}

export interface Partition {
  file: string;
  start: number;
  end: number;
  bytes: number;
  state: "ahead" | "open" | "over" | "sealed";
  dropped_at: number;
  documents: number | null;
  shells: number | null;
}

export interface Checkpoint {
  at: number;
  elapsed_ms: number;
  cells: number;
  documents: number;
  bytes_written: number;
}

/** `/api/v1/storage/document` */
export interface StoredDocumentAnswer {
  series: SeriesEntry & { id: number };
  granularity: string;
  state: "none" | "shell" | "open" | "sealed" | "head" | "memory";
  partition: {
    file: string;
    start: number;
    end: number;
    bytes: number;
    dropped_at: number;
  } | null;
  document: {
    start: number;
    end: number;
    bytes_hex: string;
    /** What is not of a slot. */
    header?: StoredPart[];
    nested: unknown;
    slots: StoredSlot[];
  } | null;
  head: StoredCell[];
  memory: StoredCell[];
}

/** The numbers of a cell lie in columns: `offset` is where the first begins, `length` what all take. */
export interface StoredSlot {
  start: number;
  n: number;
  offset: number;
  length: number;
  columns: StoredPart[];
}

/** A number of a document, and where its bytes lie. */
export interface StoredPart {
  name: string;
  offset: number;
  length: number;
  value: number | null;
}

export interface StoredCell {
  start: number;
  n: number;
  sum: number | null;
  min: number | null;
  max: number | null;
  first: number | null;
  last: number | null;
}

/** Something that an operator should know of. */
export interface Condition {
  name: string;
  message: string;
}

/** `/api/v1/status` */
export interface StatusAnswer {
  version: string;
  started: number;
  now: number;
  health: { state: string; conditions: Condition[]; warnings: Condition[] };
  protocols: { protocol: string; accepted: number; duplicate: number; refused: number }[];
  queue: { bytes: number; bytes_max: number };
  commits: { count: number; p50_ms: number | null; p99_ms: number | null; max_ms: number | null };
  requests: { outcomes: Record<string, number>; p50_ms: number | null; p99_ms: number | null };
  refused: {
    protocol: string;
    reason: string;
    count: number;
    examples: { at: number; text: string }[];
  }[];
  senders: {
    total: number;
    /** `samples` since the start; `heard` is null when that is not known. */
    top: { agent: string; series: number; samples: number; heard: number | null }[];
  };
  queries: { under_way: number; queries_max: number; memory_bytes: number; memory_max: number };
  limits: { name: string; used: number; max: number; setting: string }[];
  memory: { resident: number };
}
