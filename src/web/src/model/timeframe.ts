/**
 * The time frame of a view: slots, time range and zone. It is written in the address. Pure: time is
 * an argument.
 */
import type { Display } from "../api/types";
import { lengthOf, monthsOf, parseRange, rangeLabel, type Range } from "./range";
import { DAY, HOUR, MINUTE, addMonths, clockAt, instantOf, isZone, startOfDay } from "./zone";

export type Resolution = "1m" | "5m" | "1h" | "1d";

export const RESOLUTIONS: readonly {
  value: Resolution;
  label: string;
  slot: number;
  ranges: readonly Range[];
}[] = [
  { value: "1m", label: "1 min", slot: MINUTE, ranges: ["1h", "6h", "12h", "24h", "48h"] },
  {
    value: "5m",
    label: "5 min",
    slot: 5 * MINUTE,
    ranges: ["6h", "12h", "24h", "48h", "1w", "2w"],
  },
  { value: "1h", label: "1 hr", slot: HOUR, ranges: ["1d", "1w", "2w", "1mo", "2mo"] },
  {
    value: "1d",
    label: "1 day",
    slot: DAY,
    ranges: ["1mo", "2mo", "3mo", "6mo", "1y", "2y", "5y"],
  },
];

/** The default range of a resolution. */
const DEFAULT_RANGES: Record<Resolution, Range> = {
  "1m": "1h",
  "5m": "24h",
  "1h": "1w",
  "1d": "3mo",
};

/** The shown number of counters and deltas; gauges always show their average. */
export type FrameDisplay = Extract<Display, "avg_per_sec" | "total">;

export interface Choice {
  resolution: Resolution;
  /** The range up to now; it also applies after a fixed range is left. */
  range: Range;
  /** A fixed time range, as after a zoom. */
  fixed: { start: number; end: number } | undefined;
  /** The chosen number; `undefined` for the kind's default. */
  display: FrameDisplay | undefined;
  zone: string;
}

/** The requested and drawn slots, `end` exclusive. */
export interface Window {
  start: number;
  end: number;
  resolution: Resolution;
  zone: string;
}

/** The longest and the shortest time range. */
const LENGTH_MAX = 5 * 366 * DAY;
const LENGTH_MIN = 2 * MINUTE;
/** The maximum and minimum number of slots of a range: more are slow, fewer show nothing. */
const SLOTS_MAX = 25_000;
const SLOTS_MIN = 2;
/** The minimum number of slots of a zoom; a zoom to fewer switches to finer slots. */
const ZOOM_SLOTS_MIN = 30;

function optionsOf(resolution: Resolution) {
  return RESOLUTIONS.find(({ value }) => value === resolution) ?? finest;
}

const [finest] = RESOLUTIONS as [(typeof RESOLUTIONS)[number]];

export const rangesOf = (resolution: Resolution) => optionsOf(resolution).ranges;
export const slotOf = (resolution: Resolution) => optionsOf(resolution).slot;

/** The next coarser resolution, which loads faster. */
export function coarser(resolution: Resolution): Resolution | undefined {
  const index = RESOLUTIONS.findIndex(({ value }) => value === resolution);
  return RESOLUTIONS[index + 1]?.value;
}

/** The longest range with slots of a resolution. */
export function rangeLengthMax(resolution: Resolution): number {
  return Math.min(SLOTS_MAX * slotOf(resolution), LENGTH_MAX);
}

/** Returns true if a range has neither too many nor too few slots. */
function fits(resolution: Resolution, range: Range): boolean {
  const slots = lengthOf(range) / slotOf(resolution);
  return slots >= SLOTS_MIN && slots <= SLOTS_MAX;
}

/** The finest resolution, starting at `preferred`, that offers a range of this length. */
function resolutionFor(range: Range, preferred: Resolution): Resolution {
  const fitting = RESOLUTIONS.filter(({ slot }) => slot >= slotOf(preferred)).find(
    ({ ranges }) => lengthOf(ranges.at(-1) ?? "1h") >= lengthOf(range),
  );
  return fitting?.value ?? "1d";
}

/** The resolution nearest to the named one in which a range fits. */
function fittingResolution(named: Resolution, range: Range): Resolution {
  const order =
    lengthOf(range) / slotOf(named) > SLOTS_MAX ? RESOLUTIONS : RESOLUTIONS.toReversed();
  return order.find(({ value }) => fits(value, range))?.value ?? "1d";
}

/** The range of the same length among those of a resolution, or else the range itself. */
function rangeIn(resolution: Resolution, range: Range): Range {
  if (lengthOf(range) > LENGTH_MAX) return "5y";
  const hasLength = (other: Range) => lengthOf(other) === lengthOf(range);
  return rangesOf(resolution).find(hasLength) ?? range;
}

/** The range of a resolution nearest to a length. */
function nearestRange(resolution: Resolution, length: number): Range {
  const { ranges } = optionsOf(resolution);
  const distance = (range: Range) => Math.abs(Math.log(lengthOf(range) / length));
  return ranges.reduce((best, range) => (distance(range) < distance(best) ? range : best));
}

/** Returns true if any resolution offers a range; other ranges were typed. */
function isOffered(range: Range): boolean {
  return RESOLUTIONS.some(({ ranges }) => ranges.includes(range));
}

/** Chooses a resolution; a range stays if the resolution has it, or if it was typed and fits. */
export function withResolution(choice: Choice, resolution: Resolution): Choice {
  const isTyped = !isOffered(choice.range) && fits(resolution, choice.range);
  const isKept = isTyped || rangesOf(resolution).includes(choice.range);
  const range = isKept ? choice.range : nearestRange(resolution, lengthOf(choice.range));
  return { ...choice, resolution, range };
}

/** Chooses a range up to now, in other slots if it does not fit; the window follows the clock. */
export function withRange(choice: Choice, range: Range): Choice {
  const resolution = fits(choice.resolution, range)
    ? choice.resolution
    : fittingResolution(choice.resolution, range);
  return { ...choice, resolution, range: rangeIn(resolution, range), fixed: undefined };
}

/** Shows a time range, in finer slots when few would remain. */
export function withZoom(choice: Choice, start: number, end: number): Choice {
  const [from, to] = start <= end ? [start, end] : [end, start];
  const length = Math.min(Math.max(to - from, LENGTH_MIN), LENGTH_MAX);
  const middle = (from + to) / 2;
  const fixed = { start: Math.round(middle - length / 2), end: Math.round(middle + length / 2) };
  let resolution = choice.resolution;
  for (const option of [...RESOLUTIONS].reverse()) {
    if (option.slot >= slotOf(resolution)) continue;
    if (length / slotOf(resolution) < ZOOM_SLOTS_MIN) resolution = option.value;
  }
  return { ...withResolution(choice, resolution), fixed: snapToSlots(choice, resolution, fixed) };
}

/** Shows a typed time range, in coarser slots when there would be too many. */
export function withTimes(choice: Choice, start: number, end: number): Choice {
  const zoomed = withZoom(choice, start, end);
  const { start: from = start, end: to = end } = zoomed.fixed ?? {};
  const isReadable = ({ value }: { value: Resolution }) =>
    slotOf(value) >= slotOf(zoomed.resolution) && (to - from) / slotOf(value) <= SLOTS_MAX;
  const resolution = RESOLUTIONS.find(isReadable)?.value ?? "1d";
  if (resolution === zoomed.resolution) return zoomed;
  const fixed = snapToSlots(choice, resolution, { start: from, end: to });
  return { ...withResolution(choice, resolution), fixed };
}

/** Extends a range to whole slots. */
function snapToSlots(
  { zone }: Choice,
  resolution: Resolution,
  { start, end }: { start: number; end: number },
) {
  return { start: floorSlot(resolution, zone, start), end: ceilSlot(resolution, zone, end) };
}

/** Widens a time range, in coarser slots when there would be too many. */
export function withWiderWindow(
  choice: Choice,
  window: Window,
  factor: number,
  now: number,
): Choice {
  const length = Math.min((window.end - window.start) * factor, LENGTH_MAX);
  const middle = (window.start + window.end) / 2;
  const end = Math.min(middle + length / 2, ceilSlot(window.resolution, window.zone, now));
  let resolution = choice.resolution;
  for (const { value, slot, ranges } of RESOLUTIONS) {
    const longest = lengthOf(ranges.at(-1) ?? "1h");
    if (slot > slotOf(resolution) && length > lengthOf(rangesOf(resolution).at(-1) ?? "1h") * 1.5) {
      resolution = value;
    }
    if (length <= longest * 1.5) break;
  }
  const fixed = { start: Math.round(end - length), end: Math.round(end) };
  return { ...withResolution(choice, resolution), fixed: snapToSlots(choice, resolution, fixed) };
}

/** Moves by a fraction of the window; at the present it follows the clock again. */
export function withPan(choice: Choice, window: Window, fraction: number, now: number): Choice {
  const { start, end, resolution, zone } = window;
  const presentEnd = ceilSlot(resolution, zone, now);
  const distance = Math.min(fraction * (end - start), presentEnd - end);
  if (fraction > 0 && distance <= 0) return choice;
  // The ends are rounded to slots, so that the number of slots stays.
  const move = (instant: number) =>
    floorSlot(resolution, zone, instant + distance + slotOf(resolution) / 2);
  return { ...choice, fixed: { start: move(start), end: move(end) } };
}

/** The start of the slot at an instant. */
export function floorSlot(resolution: Resolution, zone: string, instant: number): number {
  if (resolution === "1d") return startOfDay(zone, instant);
  const slot = slotOf(resolution);
  return Math.floor(instant / slot) * slot;
}

function ceilSlot(resolution: Resolution, zone: string, instant: number): number {
  const floor = floorSlot(resolution, zone, instant);
  if (floor === instant) return instant;
  return resolution === "1d" ? startOfDay(zone, instant, 1) : floor + slotOf(resolution);
}

/** The window of a choice at this moment. */
export function windowOf(choice: Choice, now: number): Window {
  const { resolution, zone, range } = choice;
  if (choice.fixed) {
    const start = floorSlot(resolution, zone, choice.fixed.start);
    const end = ceilSlot(resolution, zone, choice.fixed.end);
    return { start, end, resolution, zone };
  }
  const end = ceilSlot(resolution, zone, now);
  return { start: rangeStart(choice, end, range), end, resolution, zone };
}

function rangeStart({ resolution, zone }: Choice, end: number, range: Range): number {
  const months = monthsOf(range);
  if (months > 0) return floorSlot(resolution, zone, addMonths(zone, end, -months));
  if (resolution === "1d") return startOfDay(zone, end, -Math.round(lengthOf(range) / DAY));
  return floorSlot(resolution, zone, end - lengthOf(range));
}

/** The resolution in the API's form. */
export function resolutionOfApi(resolution: Resolution): string {
  return resolution === "1d" ? "day" : resolution;
}

/** The slot starts of a window, for answers without an axis. */
export function slotStarts({ start, end, resolution, zone }: Window): number[] {
  const starts: number[] = [];
  if (resolution === "1d") {
    const { year, month, day } = clockAt(zone, start);
    for (let k = 0; k < 10_000; k++) {
      const time = instantOf(zone, year, month, day + k);
      if (time >= end) break;
      starts.push(time);
    }
    return starts;
  }
  const slot = slotOf(resolution);
  for (let time = start; time < end && starts.length < 100_000; time += slot) starts.push(time);
  return starts;
}

export interface Defaults {
  resolution?: string | undefined;
  range?: string | undefined;
  zone: string;
}

/**
 * Reads the address. The default replaces a parameter that is absent or invalid; a range that does
 * not fit its resolution gets another resolution. `complaintAbout` reports both.
 */
export function readChoice(params: URLSearchParams, defaults: Defaults): Choice {
  const asked = parseRange(params.get("range") ?? "");
  const preferred = asResolution(defaults.resolution) ?? "1m";
  const named = asResolution(params.get("resolution"));
  const resolution =
    asked === undefined
      ? (named ?? preferred)
      : named === undefined
        ? resolutionFor(asked, preferred)
        : fits(named, asked)
          ? named
          : fittingResolution(named, asked);
  const usual = parseRange(defaults.range ?? "");
  const isUsual =
    usual !== undefined &&
    (rangesOf(resolution).includes(usual) ||
      (resolution === preferred && !isOffered(usual) && fits(resolution, usual)));
  const range =
    asked !== undefined ? rangeIn(resolution, asked) : isUsual ? usual : DEFAULT_RANGES[resolution];
  const zone = params.get("tz");
  const display = params.get("display");
  return {
    resolution,
    range,
    fixed: readFixed(params),
    display: display === "avg_per_sec" || display === "total" ? display : undefined,
    zone: zone !== null && isZone(zone) ? zone : defaults.zone,
  };
}

/** The reason why a choice differs from the address that it was read from. */
export function complaintAbout(params: URLSearchParams, choice: Choice): string | undefined {
  const [range, resolution] = [params.get("range"), params.get("resolution")];
  const shown = `${rangeLabel(choice.range)} by ${optionsOf(choice.resolution).label} is shown.`;
  const asked = parseRange(range ?? "");
  const named = asResolution(resolution);
  if (range && asked === undefined)
    return `The range “${range}” is not a length such as 6h, 14d or 3mo. ${shown}`;
  if (resolution && named === undefined)
    return `The resolution “${resolution}” is not 1m, 5m, 1h or 1d. ${shown}`;
  if (asked !== undefined && lengthOf(asked) > LENGTH_MAX)
    return `The range “${asked}” is longer than 5 years. ${shown}`;
  if (asked !== undefined && named !== undefined && named !== choice.resolution) {
    const isLong = lengthOf(asked) / slotOf(named) > SLOTS_MAX;
    return `${rangeLabel(asked)} has too ${isLong ? "many" : "few"} slots of ${optionsOf(named).label}. ${shown}`;
  }
  const hasTimes = Boolean(params.get("start") ?? params.get("end"));
  return hasTimes && !choice.fixed
    ? `start and end of the address are not a range of Unix milliseconds or RFC 3339 times. ${shown}`
    : undefined;
}

function asResolution(text: string | null | undefined): Resolution | undefined {
  const word = text === "day" ? "1d" : text;
  return RESOLUTIONS.find(({ value }) => value === word)?.value;
}

function readFixed(params: URLSearchParams): Choice["fixed"] {
  const start = asInstant(params.get("start"));
  const end = asInstant(params.get("end"));
  if (start === undefined || end === undefined || end <= start) return undefined;
  return { start: Math.max(start, end - LENGTH_MAX), end };
}

/** Unix milliseconds, or an ISO 8601 date. */
function asInstant(text: string | null): number | undefined {
  if (text === null || text === "") return undefined;
  const instant = /^\d+$/.test(text) ? Number(text) : Date.parse(text);
  return Number.isFinite(instant) && Math.abs(instant) < 8e15 ? instant : undefined;
}

/** The address parameters of a choice; defaults are left out. */
export function writeChoice(
  choice: Choice,
  defaults: Defaults,
): Record<string, string | undefined> {
  const defaultChoice = readChoice(new URLSearchParams(), defaults);
  const isDefault =
    choice.resolution === defaultChoice.resolution && choice.range === defaultChoice.range;
  return {
    resolution: isDefault ? undefined : choice.resolution,
    range: isDefault ? undefined : choice.range,
    start: choice.fixed ? String(choice.fixed.start) : undefined,
    end: choice.fixed ? String(choice.fixed.end) : undefined,
    display: choice.display,
    tz: choice.zone === defaults.zone ? undefined : choice.zone,
  };
}
