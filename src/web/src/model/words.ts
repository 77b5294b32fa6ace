/** Durations and numbers as short texts for rows, tiles and bars. */

const SECOND = 1000;
/** Units, largest first; a text combines two neighbours. */
const STEPS: [number, string][] = [
  [365 * 86_400 * SECOND, "y"],
  [86_400 * SECOND, "d"],
  [3600 * SECOND, "h"],
  [60 * SECOND, "min"],
  [SECOND, "s"],
];

/** `12 d 4 h`, `3 h`, `45 s`, `250 ms`: the largest unit, and the next unit when it matters. */
export function lengthText(ms: number, units = 2): string {
  const size = Math.max(0, ms);
  if (size < SECOND) return `${size < 10 ? rounded(size, 1) : Math.round(size)} ms`;
  const first = STEPS.findIndex(([step]) => size >= step);
  let rest = size;
  const words: string[] = [];
  for (const [step, name] of STEPS.slice(first, first + units)) {
    const count = Math.floor(rest / step);
    rest -= count * step;
    if (count > 0) words.push(`${count} ${name}`);
    // Hours do not matter next to hundreds of days.
    if (count >= 100) break;
  }
  return words.join(" ");
}

/** A duration: `250 ms`, `1.4 s`, `34 s`, `2 min`. */
export function elapsedText(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "–";
  return ms >= SECOND && ms < 60 * SECOND ? `${fewDigits(ms / SECOND)} s` : lengthText(ms, 1);
}

/** `12 s ago`, in one unit. */
export function agoText(ms: number): string {
  return ms < SECOND ? "now" : `${lengthText(ms, 1)} ago`;
}

/** `in 3 h`; a past time is `due`. */
export function inText(ms: number): string {
  return ms < SECOND ? "due" : `in ${lengthText(ms, 1)}`;
}

function rounded(value: number, decimals: number): string {
  return String(Number(value.toFixed(decimals)));
}

/** Two or three significant digits: `3.4`, `34`, `340`. */
function fewDigits(value: number): string {
  return value < 9.95 ? rounded(value, 1) : String(Math.round(value));
}

/** `34 %`, `3.4 %` */
export function percentText(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : `${fewDigits(value)} %`;
}

const BYTES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** `1.2 MiB` */
export function bytesText(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  let size = value;
  let power = 0;
  while (size >= 999.5 && power < BYTES.length - 1) {
    size /= 1024;
    power++;
  }
  return `${power === 0 ? String(Math.round(size)) : fewDigits(size)} ${BYTES[power] ?? ""}`;
}

/** `1,234`; from a million on `1.2 M` */
export function countText(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (value >= 999_500_000) return `${fewDigits(value / 1e9)} G`;
  if (value >= 999_500) return `${fewDigits(value / 1e6)} M`;
  return Math.round(value).toLocaleString("en");
}

/** `1 host`, `2 hosts` */
export function countWithNoun(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}
