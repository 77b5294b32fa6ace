/** The daemon's health and work. */

/** A condition or warning for the operator. */
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
    /** `samples` counts since the start; `heard` is null when unknown. */
    top: { agent: string; series: number; samples: number; heard: number | null }[];
  };
  queries: { under_way: number; queries_max: number; memory_bytes: number; memory_max: number };
  limits: { name: string; used: number; max: number; setting: string }[];
  memory: { resident: number };
}

/** `/api/v1/cardinality` */
export interface CardinalityAnswer {
  /** The time of the earlier numbers; null without any. */
  since: number | null;
  series: CountedName;
  /** Series by metric. */
  metrics: CountedName[];
  /** Values by tag. */
  tags: CountedName[];
  /** Series by sender. */
  senders: CountedName[];
}

/** A number now and earlier; `before` is null when unknown. */
export interface CountedName {
  name: string;
  count: number;
  before: number | null;
}
