/** Several chosen alerts: the choice, and the labels of a silence that covers them. Pure. */
import type { SilenceMatcher, Tags } from "../../api/types";
import { escapedPattern } from "../../model/quoted";

export interface Choice {
  /** The keys of the chosen alerts. */
  chosen: ReadonlySet<string>;
  /** The alert that was clicked last: a range begins there. */
  anchor: string | undefined;
}

export const NOTHING_CHOSEN: Choice = { chosen: new Set(), anchor: undefined };

/** The maximum number of alerts of one choice. */
export const CHOSEN_MAX = 500;

/**
 * The choice after a click on an alert; with Shift, all alerts from the one that was clicked last
 * get the same state. `order` contains the keys of the visible alerts.
 */
export function withClick(
  { chosen, anchor }: Choice,
  key: string,
  { order, isRange }: { order: readonly string[]; isRange: boolean },
): Choice {
  const isChosen = !chosen.has(key);
  const [from, to] = [order.indexOf(anchor ?? key), order.indexOf(key)];
  const range = isRange && from >= 0 && to >= 0;
  const clicked = range ? order.slice(Math.min(from, to), Math.max(from, to) + 1) : [key];
  const next = new Set(chosen);
  for (const other of clicked) {
    if (isChosen) next.add(other);
    else next.delete(other);
  }
  return { chosen: new Set([...next].slice(0, CHOSEN_MAX)), anchor: key };
}

/** The matchers that all alerts with these labels meet; equal labels are compared exactly. */
export function matchersOfAll(alerts: readonly Tags[]): SilenceMatcher[] {
  const names = [...new Set(alerts.flatMap((labels) => Object.keys(labels)))];
  return names
    .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
    .map((name) => {
      const values = [...new Set(alerts.map((labels) => labels[name] ?? ""))];
      const [only = ""] = values;
      if (values.length === 1) return { name, value: only, isRegex: false, isEqual: true };
      return { name, value: values.map(escapedPattern).join("|"), isRegex: true, isEqual: true };
    });
}

const rank = (name: string) => (name === "alertname" ? 0 : 1);

/**
 * Makes the test whether an acknowledgement of alerts with these labels covers another alert: that
 * has all labels of one of them. Alerts differ by few sets of names, so a lookup for each set is
 * enough.
 */
export function coveredBy(alerts: readonly Tags[]): (labels: Tags) => boolean {
  const keyOf = (names: readonly string[], labels: Tags) =>
    JSON.stringify(names.map((name) => labels[name] ?? null));
  const keysOfNames = new Map<string, { names: string[]; keys: Set<string> }>();
  for (const labels of alerts) {
    const names = Object.keys(labels).sort();
    const id = JSON.stringify(names);
    const known = keysOfNames.get(id) ?? { names, keys: new Set() };
    known.keys.add(keyOf(names, labels));
    keysOfNames.set(id, known);
  }
  return (labels) =>
    [...keysOfNames.values()].some(({ names, keys }) => keys.has(keyOf(names, labels)));
}

/** Returns true if labels meet all matchers; `undefined` if a pattern cannot be checked here. */
export function meetsAll(matchers: readonly SilenceMatcher[], labels: Tags): boolean | undefined {
  try {
    return matchers
      .filter(({ name }) => name.trim() !== "")
      .every(({ name, value, isRegex, isEqual }) => {
        const actual = labels[name.trim()] ?? "";
        const isMet = isRegex ? new RegExp(`^(?:${value})$`, "s").test(actual) : actual === value;
        return isMet === isEqual;
      });
  } catch {
    return undefined;
  }
}
