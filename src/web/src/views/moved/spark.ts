/** The drawing of a series before and during a stretch. Pure. */

/** The size of the drawing, in the units of its path. */
export const BOX = { width: 240, height: 56 };

export interface MovedSpark {
  /** The path of the values; gaps stay gaps. */
  path: string;
  /** The left edge of the stretch. */
  stretchX: number;
  /** The height of the value before the stretch. */
  beforeY: number | undefined;
}

type Point = readonly [number, number | null];

export function movedSpark(
  points: readonly Point[],
  start: number,
  before: number | null,
): MovedSpark {
  const values = points.flatMap(([, value]) => (value === null ? [] : [value]));
  const known = before === null ? values : [...values, before];
  const low = Math.min(...known);
  const span = Math.max(...known) - low || 1;
  const [from = 0, last = from] = [points[0]?.[0], points.at(-1)?.[0]];
  const length = last - from || 1;
  const xOf = (at: number) => rounded(((at - from) / length) * BOX.width);
  // A line at the edge would be cut in half.
  const yOf = (value: number) => rounded(2 + (1 - (value - low) / span) * (BOX.height - 4));
  let path = "";
  points.forEach(([at, value], k) => {
    if (value === null) return;
    const isConnected = k > 0 && points[k - 1]?.[1] !== null;
    const isAlone = !isConnected && (points[k + 1]?.[1] ?? null) === null;
    path += `${isConnected ? "L" : "M"}${xOf(at)} ${yOf(value)}${isAlone ? "h2" : ""}`;
  });
  return {
    path,
    stretchX: Math.min(Math.max(xOf(start), 0), BOX.width),
    beforeY: before === null ? undefined : yOf(before),
  };
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}

/** `× 7.2`, `−45 %`, `+12 %`: the change of a value. */
export function changeOf(before: number | null, during: number | null): string {
  if (before === null) return "began";
  if (during === null) return "ended";
  if (before === 0 || before * during < 0) return during > before ? "rose" : "fell";
  const ratio = during / before;
  if (ratio >= 2)
    return `× ${ratio >= 100 ? Math.round(ratio).toLocaleString("en") : ratio.toPrecision(2)}`;
  const percent = Math.round((ratio - 1) * 100);
  return `${percent < 0 ? "−" : "+"}${Math.abs(percent)} %`;
}
