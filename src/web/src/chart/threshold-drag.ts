/** A threshold that follows the pointer. Pure. */

/** The threshold of a chart that the reader can move. */
export interface MovableThreshold {
  value: number;
  /** Called with each value while the threshold moves. */
  onMove: (value: number) => void;
  /** Called with the last value. */
  onEnd: (value: number) => void;
}

/** The pointer takes the threshold within this distance. */
const NEAR_PX = 6;

/** The vertical axis of a plot. */
export interface ValueAxis {
  /** Pixels from the top to a value; `undefined` without a drawing. */
  yOfValue: (value: number) => number | undefined;
  valueAt: (y: number) => number;
  readonly height: number;
}

/** Returns true if a position is on the line of a threshold. */
export function isOnThreshold(axis: ValueAxis, value: number, y: number): boolean {
  const line = axis.yOfValue(value);
  return line !== undefined && Math.abs(line - y) <= NEAR_PX && line >= 0 && line <= axis.height;
}

/** The value at a position, as round as a pixel permits, within the limits of the axis. */
export function roundValueAt(
  axis: ValueAxis,
  y: number,
  { low, high }: { low: number; high: number },
): number {
  const inside = Math.min(Math.max(y, 0), axis.height);
  const exact = Math.min(Math.max(axis.valueAt(inside), low), high);
  const perPixel = Math.abs(axis.valueAt(inside) - axis.valueAt(inside + 1));
  if (!(perPixel > 0) || !Number.isFinite(perPixel)) return exact;
  const step = 10 ** Math.ceil(Math.log10(perPixel));
  // The division of whole numbers leaves no digits of 0.1 + 0.2.
  return step < 1
    ? Math.round(exact / step) / Math.round(1 / step)
    : Math.round(exact / step) * step;
}

/** The limits of an axis, which stay while a threshold moves. */
export function limitsOf(axis: ValueAxis): { low: number; high: number } {
  const [a, b] = [axis.valueAt(0), axis.valueAt(axis.height)];
  return { low: Math.min(a, b), high: Math.max(a, b) };
}
