import { readComparison, type Comparison } from "./compare";

/**
 * The reader's changes to one chart: shown series, axis, full screen. The address contains them, so
 * that a link shows the same chart. A short hash names a series.
 */
export interface ChartState {
  /** The only series shown; all when empty. */
  only: string[];
  /** Hidden series. */
  hide: string[];
  /** True for a logarithmic axis; `undefined` until the reader chooses. */
  log: boolean | undefined;
  stacked: boolean | undefined;
  /** The earlier time that is drawn too. */
  compare: Comparison | undefined;
  /** True for the difference from the earlier time in place of both lines. */
  diff: boolean;
  /** True for a heat map; `undefined` until the reader chooses. */
  heat: boolean | undefined;
  /** True for an unfolded legend; `undefined` until the reader chooses. */
  legend: boolean | undefined;
  full: boolean;
}

/** The name of a chart in the address. */
export function slug(title: string): string {
  const words = title.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return words.join("-").slice(0, 60) || "chart";
}

/** FNV-1a of 32 bits, as at most seven letters and digits. */
export function hash(text: string): string {
  let hashValue = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    hashValue ^= text.charCodeAt(i);
    hashValue = Math.imul(hashValue, 0x01000193);
  }
  return (hashValue >>> 0).toString(36);
}

const HASHES_MAX = 100;

function readHashes(text: string | null): string[] {
  return (text ?? "")
    .split(".")
    .filter((word) => /^[0-9a-z]{1,7}$/.test(word))
    .slice(0, HASHES_MAX);
}

function readFlag(text: string | null): boolean | undefined {
  return text === "1" ? true : text === "0" ? false : undefined;
}

export function readState(params: URLSearchParams, id: string): ChartState {
  return {
    only: readHashes(params.get(`only.${id}`)),
    hide: readHashes(params.get(`hide.${id}`)),
    log: readFlag(params.get(`log.${id}`)),
    stacked: readFlag(params.get(`stacked.${id}`)),
    compare: readComparison(params.get(`compare.${id}`)),
    diff: params.get(`diff.${id}`) === "1",
    heat: readFlag(params.get(`heat.${id}`)),
    legend: readFlag(params.get(`legend.${id}`)),
    full: params.get("full") === id,
  };
}

function flagText(value: boolean | undefined): string | undefined {
  return value === undefined ? undefined : value ? "1" : "0";
}

export function writeState(state: ChartState, id: string): Record<string, string | undefined> {
  return {
    [`only.${id}`]: state.only.join(".") || undefined,
    [`hide.${id}`]: state.hide.join(".") || undefined,
    [`log.${id}`]: flagText(state.log),
    [`stacked.${id}`]: flagText(state.stacked),
    [`compare.${id}`]: state.compare,
    [`diff.${id}`]: state.compare && state.diff ? "1" : undefined,
    [`heat.${id}`]: flagText(state.heat),
    [`legend.${id}`]: flagText(state.legend),
    full: state.full ? id : undefined,
  };
}

/** True for each series that is shown. */
export function shownFlags(state: ChartState, keys: readonly string[]): boolean[] {
  const names = keys.map(hash);
  const isOnly = names.some((name) => state.only.includes(name));
  return names.map((name) => (isOnly ? state.only.includes(name) : !state.hide.includes(name)));
}

/** A click: show only this series, or all again. */
export function isolateSeries(state: ChartState, key: string): ChartState {
  const name = hash(key);
  const isAlone = state.only.length === 1 && state.only[0] === name;
  return { ...state, only: isAlone ? [] : [name], hide: [] };
}

/** A click with Shift: hide this series, or show it again. */
export function toggleSeries(state: ChartState, key: string, keys: readonly string[]): ChartState {
  const name = hash(key);
  const shownNow = shownFlags(state, keys);
  const hidden = keys.filter((_, k) => !shownNow[k]).map(hash);
  const hide = hidden.includes(name) ? hidden.filter((other) => other !== name) : [...hidden, name];
  const isNothingLeft = hide.length >= keys.length;
  return { ...state, only: [], hide: isNothingLeft ? [] : hide };
}
