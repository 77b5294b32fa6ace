/** Converts the coarse lines of sparklines to paths. */
import type { Spark } from "../api/types";

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const TOP = DIGITS.length - 1;

/** The values of a line; `null` for a missing value. */
export function sparkValues(spark: Spark): (number | null)[] {
  return Array.from(spark.line, (letter) => {
    const part = DIGITS.indexOf(letter);
    return part < 0 ? null : (part / TOP) * spark.max;
  });
}

/** The size of the drawing, in pixels. */
export interface SparkBox {
  width: number;
  height: number;
}

/**
 * One path for the whole line: gaps stay gaps, and a point between two gaps is a short dash.
 * `full` is the value at the top; the line's own maximum by default.
 */
export function sparkPath(spark: Spark, box: SparkBox, full?: number): string {
  const values = sparkValues(spark);
  const top = full ?? (Math.max(...values.map((value) => value ?? 0)) || 1);
  const step = box.width / Math.max(values.length - 1, 1);
  // A line at the edge would be cut in half.
  const room = box.height - 2;
  let path = "";
  let isDown = false;
  values.forEach((value, index) => {
    if (value === null) {
      isDown = false;
      return;
    }
    const x = round(index * step);
    const y = round(1 + room * (1 - Math.min(value / top, 1)));
    const isAlone = !isDown && (values[index + 1] ?? null) === null;
    path += isAlone ? `M${x} ${y}h1` : `${isDown ? "L" : "M"}${x} ${y}`;
    isDown = true;
  });
  return path;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
