/** The positions of a granularity's partitions on its time line. */
import type { Partition, StoredGranularity } from "../../api/types";

/** A time range, drawn from edge to edge. */
export interface Scale {
  start: number;
  end: number;
}

/** The range from the oldest to the end of the newest partition, extended to include now. */
export function scaleOf(partitions: readonly Partition[], now: number): Scale | undefined {
  if (partitions.length === 0) return undefined;
  const start = Math.min(now, ...partitions.map(({ start }) => start));
  const end = Math.max(now, ...partitions.map(({ end }) => end));
  return end > start ? { start, end } : undefined;
}

/** The position in percent from the left edge. */
export function positionOf(scale: Scale, at: number): number {
  const part = (at - scale.start) / (scale.end - scale.start);
  return Math.max(0, Math.min(1, part)) * 100;
}

export interface Block {
  partition: Partition;
  /** The position and the width in percent of the lane. */
  left: number;
  width: number;
  /** The bytes in percent of the largest partition. */
  fill: number;
}

export function blocksOf(partitions: readonly Partition[], scale: Scale): Block[] {
  const most = Math.max(1, ...partitions.map(({ bytes }) => bytes));
  return partitions.map((partition) => {
    const left = positionOf(scale, partition.start);
    return {
      partition,
      left,
      width: positionOf(scale, partition.end) - left,
      fill: (partition.bytes / most) * 100,
    };
  });
}

export type PartitionState = Partition["state"];

export const STATE_TEXTS: Record<PartitionState, { word: string; means: string }> = {
  ahead: { word: "Ahead", means: "preallocated, its documents are shells" },
  open: { word: "Open", means: "covers the current time" },
  over: { word: "Over", means: "has ended, not compressed yet" },
  sealed: { word: "Sealed", means: "has ended, its documents are compressed" },
};

/** The bytes of all partitions of a granularity. */
export function bytesOf({ partitions }: StoredGranularity): number {
  return partitions.reduce((total, { bytes }) => total + bytes, 0);
}
