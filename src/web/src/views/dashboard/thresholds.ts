/** Thresholds of a panel as text: `good, 80 warn, 90 bad`. Pure. */
import type { Level, PanelThreshold } from "../../api/types";

const LEVELS: readonly Level[] = ["none", "good", "warn", "bad"];
const THRESHOLDS_MAX = 10;

export function thresholdsText(thresholds: readonly PanelThreshold[] = []): string {
  return thresholds
    .map(({ from, level }) => (from === undefined ? level : `${from} ${level}`))
    .join(", ");
}

/** Reads thresholds in ascending order, or returns what is wrong with the text. */
export function readThresholds(text: string): PanelThreshold[] | string {
  const parts = text.split(",").map((part) => part.trim());
  const read: PanelThreshold[] = [];
  for (const part of parts.filter((part) => part !== "")) {
    const [, number, word = ""] = /^(\S+\s+)?(\S+)$/.exec(part) ?? [];
    const level = LEVELS.find((known) => known === word);
    const from = number === undefined ? undefined : Number(number);
    if (!level || (from !== undefined && !Number.isFinite(from)))
      return `“${part}” is not a threshold. Use a number and good, warn or bad: 80 warn, 90 bad.`;
    const last = read.at(-1);
    const isHigher = !last || (from !== undefined && from > (last.from ?? -Infinity));
    if (!isHigher) return `“${part}” must be larger than the threshold before it.`;
    read.push(from === undefined ? { level } : { from, level });
  }
  return read.length > THRESHOLDS_MAX ? `Use at most ${THRESHOLDS_MAX} thresholds.` : read;
}

/** The thresholds of a panel as lines of a chart. */
export function thresholdLines({ thresholds }: { thresholds?: PanelThreshold[] }) {
  const lines = (thresholds ?? []).flatMap(({ from }) =>
    from === undefined ? [] : [{ value: from }],
  );
  return lines.length > 0 ? lines : undefined;
}
