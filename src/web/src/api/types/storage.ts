/** Stored files and documents. */
import type { SeriesEntry } from "./series";

/** `/api/v1/storage` */
export interface StorageAnswer {
  now: number;
  data_dir: string;
  bytes: number;
  /** Null when not reported. */
  disk: { free: number; total: number } | null;
  series: number;
  granularities: StoredGranularity[];
  /** The rules of retention that select series. */
  rules: RuleSeries[];
  /** Bytes and records that await a checkpoint, and the size of the file. */
  journal: { bytes: number; bytes_max: number; records: number; file_bytes: number };
  head: { bytes: number };
  catalog: { bytes: number; bytes_max: number };
  objects: { bytes: number };
  /** The checker's work since the start. */
  checker: { passes: number; files: number; bytes: number; faults: number };
  preallocation: { enabled: boolean; documents_ahead: number | null; until: number | null };
  /** The next turn of each granularity, finest first. */
  forecast: Turn[];
  /** Null without `storage.disk_max`. */
  budget: DiskBudget | null;
  checkpoints: Checkpoint[];
  damaged: string[];
}

/** The end of a document period, after which a checkpoint writes the documents. */
export interface Turn {
  granularity: string;
  at: number;
  /** Bytes that the turn writes, including finer granularities. */
  bytes: number;
  /** Bytes that are reserved on the disk. */
  reserved: number;
  /** Bytes that the disk lacks. */
  missing: number;
}

/** The disk budget, and the partitions that it drops within a day. */
export interface DiskBudget {
  bytes_max: number;
  bytes: number;
  /** Bytes in a day without drops for the budget. */
  bytes_ahead: number;
  /** The page only counts them. */
  drops: unknown[];
}

/** A rule of retention with the number of its series. */
export interface RuleSeries {
  name: string;
  series: number;
}

export interface StoredGranularity {
  name: string;
  slot_ms: number;
  retention: string;
  partitions: Partition[];
  preallocated_until: number | null;
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
  series: SeriesEntry;
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
    /** Fields outside of slots. */
    header?: StoredPart[];
    nested: unknown;
    slots: StoredSlot[];
  } | null;
  head: StoredCell[];
  memory: StoredCell[];
}

/** The numbers of a cell are stored in columns: `offset` is the first byte, `length` the sum. */
export interface StoredSlot {
  start: number;
  n: number;
  offset: number;
  length: number;
  columns: StoredPart[];
}

/** A number of a document, and the position of its bytes. */
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
