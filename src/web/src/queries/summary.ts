/** A summary of a series' values. Pure. */
import type { Values } from "../model/stack";

export interface Summary {
  last: number | null;
  min: number | null;
  max: number | null;
  avg: number | null;
}

/** Summarizes the values; slots without a number are ignored. */
export function summaryOf(values: Values): Summary {
  let last: number | null = null;
  let min: number | null = null;
  let max: number | null = null;
  let sum = 0;
  let count = 0;
  for (const value of values) {
    if (value === null || value === undefined || !Number.isFinite(value)) continue;
    last = value;
    min = min === null || value < min ? value : min;
    max = max === null || value > max ? value : max;
    sum += value;
    count++;
  }
  return { last, min, max, avg: count > 0 ? sum / count : null };
}

export interface Order {
  /** A column; -1 is the time or the name. */
  column: number;
  isDescending: boolean;
}

/** The order after a click on a column's head: first descending, then ascending. */
export function nextOrder(order: Order, column: number): Order {
  if (order.column !== column) return { column, isDescending: column >= 0 };
  return { column, isDescending: !order.isDescending };
}

/** The sorted order of rows; rows without a number come last in both directions. */
export function rowOrder(
  count: number,
  order: Order,
  valueOf: (row: number) => number | null | undefined,
): number[] {
  const rows = Array.from({ length: count }, (_, row) => row);
  if (order.column < 0) return order.isDescending ? rows.reverse() : rows;
  const sign = order.isDescending ? -1 : 1;
  return rows.sort((a, b) => {
    const [x, y] = [valueOf(a) ?? null, valueOf(b) ?? null];
    if (x === null || y === null) return Number(x === null) - Number(y === null) || a - b;
    return sign * (x - y) || a - b;
  });
}
