/** Labels of a chart's series: what tells them apart, the host first. Pure. */
import type { Tags } from "../api/types";

interface Named {
  metric: string;
  tags: Tags;
  display: string;
}

/** Tags that name a host, which readers look for first. */
export const HOST_TAGS: readonly string[] = ["host", "hostname", "instance", "node"];

/**
 * A label for each series: metric, tags and number, as far as they differ. Tags that are not needed
 * to tell the series apart are left out, except for the host and for `alwaysShown`.
 */
export function labelsOf(series: readonly Named[], alwaysShown: readonly string[]): string[] {
  const differs = (field: (series: Named) => string | undefined) =>
    new Set(series.map(field)).size > 1;
  const metricDiffers = differs(({ metric }) => metric);
  const displayOf = new Map(series.map(({ metric, display }) => [metric, display]));
  const displayDiffers = series.some(({ metric, display }) => display !== displayOf.get(metric));
  const shortName = shortNames(series.map(({ metric }) => metric));
  const names = neededTags(series, alwaysShown);
  return series.map(({ metric, tags, display }) => {
    const present = names.filter((name) => tags[name] !== undefined);
    const values = present.map((name) => {
      const value = tags[name] ?? "";
      return names.length === 1 || HOST_TAGS.includes(name) ? value : `${name}=${value}`;
    });
    const words = [
      ...(metricDiffers ? [shortName(metric)] : []),
      ...values,
      ...(displayDiffers ? [display] : []),
    ];
    return words.filter((word) => word !== "").join(" ");
  });
}

/** The names of the tags in labels, host first. */
function neededTags(series: readonly Named[], alwaysShown: readonly string[]): string[] {
  const hostRank = (name: string) => (HOST_TAGS.includes(name) ? HOST_TAGS.indexOf(name) : 99);
  const all = [...new Set(series.flatMap(({ tags }) => Object.keys(tags)))]
    .filter(
      (name) =>
        alwaysShown.includes(name) || new Set(series.map(({ tags }) => tags[name])).size > 1,
    )
    .sort((a, b) => hostRank(a) - hostRank(b) || (a < b ? -1 : 1));
  const distinct = (names: readonly string[]) =>
    new Set(
      series.map(({ metric, display, tags }) =>
        JSON.stringify([metric, display, ...names.map((name) => tags[name] ?? null)]),
      ),
    ).size;
  const most = distinct(all);
  let kept = all;
  for (const name of all.toReversed()) {
    if (alwaysShown.includes(name) || HOST_TAGS.includes(name)) continue;
    const others = kept.filter((other) => other !== name);
    const isNamed = ({ tags }: Named) =>
      others.some((other) => tags[other] !== undefined) || tags[name] === undefined;
    if (series.every(isNamed) && distinct(others) === most) kept = others;
  }
  return kept;
}

/** Removes the words with which all names begin. */
function shortNames(names: readonly string[]): (name: string) => string {
  const [first = "", ...others] = [...new Set(names)];
  const words = first.split(/(?<=[_.:])/);
  let commonPrefix = "";
  for (const word of words.slice(0, -1)) {
    const longerPrefix = commonPrefix + word;
    if (!others.every((name) => name.startsWith(longerPrefix) && name !== longerPrefix)) break;
    commonPrefix = longerPrefix;
  }
  return (name) => name.slice(commonPrefix.length).replaceAll("_", " ") || name;
}

/** The end of a name that stays when its middle is cut off. */
const TAIL = 10;

/** A name in two parts, so that the end stays visible when the first part is cut off. */
export function headAndTail(name: string): [string, string] {
  if (name.length <= 2 * TAIL) return [name, ""];
  // A pair of surrogates is one letter.
  const at = name.length - TAIL;
  const cut = /[\udc00-\udfff]/.test(name.charAt(at)) ? at - 1 : at;
  return [name.slice(0, cut), name.slice(cut)];
}
