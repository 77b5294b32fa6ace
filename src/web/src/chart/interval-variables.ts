/** Variables of time in expressions, as in Grafana: `$__interval`, `$__rate_interval`, `$__range`. */

/** The slots of a window of `$__rate_interval`: with one slot, a late sample would leave a gap. */
const RATE_SLOTS = 2;

const VARIABLE = /\$(?:\{(__\w+)\}|(__\w+))/g;

/** Fills in the width of a slot and the length of the window, both in milliseconds. */
export function fillIntervals(expression: string, slotMs: number, windowMs: number): string {
  const [slot, length] = [slotMs / 1000, Math.round(windowMs / 1000)];
  const values: Record<string, string> = {
    __interval: `${slot}s`,
    __interval_ms: String(slotMs),
    __rate_interval: `${RATE_SLOTS * slot}s`,
    __rate_interval_ms: String(RATE_SLOTS * slotMs),
    __range: `${length}s`,
    __range_s: String(length),
    __range_ms: String(length * 1000),
  };
  return expression.replace(VARIABLE, (whole, long?: string, short?: string) => {
    const name = long ?? short ?? "";
    return Object.hasOwn(values, name) ? (values[name] ?? whole) : whole;
  });
}
