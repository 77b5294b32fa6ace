/** Converts the coarse lines of sparklines to paths. */
import type { Spark } from "../api/types";

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const DIGIT_MAX = DIGITS.length - 1;

/** The values of a line; `null` for a missing value. */
export function sparkValues(spark: Spark): (number | null)[] {
  return Array.from(spark.line, (letter) => {
    const digit = DIGITS.indexOf(letter);
    return digit < 0 ? null : (digit / DIGIT_MAX) * spark.max;
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
  const topValue = full ?? (Math.max(...values.map((value) => value ?? 0)) || 1);
  const step = box.width / Math.max(values.length - 1, 1);
  // A line at the edge would be cut in half.
  const drawnHeight = box.height - 2;
  let path = "";
  let isPenDown = false;
  values.forEach((value, index) => {
    if (value === null) {
      isPenDown = false;
      return;
    }
    const x = roundToTenth(index * step);
    const y = roundToTenth(1 + drawnHeight * (1 - Math.min(value / topValue, 1)));
    const isAlone = !isPenDown && (values[index + 1] ?? null) === null;
    path += isAlone ? `M${x} ${y}h1` : `${isPenDown ? "L" : "M"}${x} ${y}`;
    isPenDown = true;
  });
  return path;
}

function roundToTenth(value: number): number {
  return Math.round(value * 10) / 10;
}
