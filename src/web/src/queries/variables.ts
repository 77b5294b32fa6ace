/**
 * Variables of a dashboard: the chosen value replaces `$host` or `${host}` in queries and titles.
 * No choice means all values.
 */
import type { MetricQuery, PanelQuery, Variable } from "../api/types";
import { escapedPattern } from "../model/quoted";
import { namesOf, selectionOf, tagsOf } from "./tags";

/** Chosen values by variable; a missing variable and an empty list mean all values. */
export type ChosenValues = Readonly<Record<string, readonly string[]>>;

/** The maximum number of queries that a query with variables expands to. */
export const EXPANDED_MAX = 50;

/** A variable's parameter in the address, repeated for each value. */
export const keyOf = (variable: string) => `var.${variable}`;

export function chosenOf(params: URLSearchParams, variables: readonly Variable[]): ChosenValues {
  const pairs = variables.map(({ name, multi }) => {
    const values = params.getAll(keyOf(name)).filter((value) => value !== "");
    return [name, multi ? values.slice(0, EXPANDED_MAX) : values.slice(0, 1)] as const;
  });
  return Object.fromEntries(pairs);
}

const REFERENCE = /\$(?:\{(\w+)\}|(\w+))/g;

/** The given variables that a text contains. */
export function namesIn(text: string, chosen: ChosenValues): string[] {
  const names = [...text.matchAll(REFERENCE)].map((match) => match[1] ?? match[2] ?? "");
  return [...new Set(names)].filter((name) => Object.hasOwn(chosen, name));
}

/** The title with the values of its variables, separated by commas. */
export function expandTitle(text: string, chosen: ChosenValues): string {
  return text.replace(REFERENCE, (whole, long?: string, short?: string) => {
    const name = long ?? short ?? "";
    if (!Object.hasOwn(chosen, name)) return whole;
    const values = chosen[name] ?? [];
    return values.length === 0 ? "all" : values.join(", ");
  });
}

/** The expanded queries: one query for each of several values. */
export function expandQueries(queries: readonly PanelQuery[], chosen: ChosenValues): PanelQuery[] {
  return queries.flatMap((query): PanelQuery[] => {
    if (query.kind === "metric") return expandMetric(query, chosen);
    return [{ ...query, expression: expandExpression(query.expression, chosen) }];
  });
}

function expandMetric(query: MetricQuery, chosen: ChosenValues): MetricQuery[] {
  let all: MetricQuery[] = [{ ...query, ...groupingOf(query, chosen) }];
  for (const name of namesIn(`${query.tags} ${query.metric}`, chosen)) {
    const values = chosen[name] ?? [];
    if (values.length === 0)
      all = all.map((expanded) => ({ ...expanded, tags: withoutVariable(expanded.tags, name) }));
    else all = all.flatMap((expanded) => values.map((value) => fillQuery(expanded, name, value)));
    all = all.slice(0, EXPANDED_MAX);
  }
  return all;
}

/** Adds tags with several chosen values to the grouping, so that their lines stay separate. */
function groupingOf(query: MetricQuery, chosen: ChosenValues): Partial<MetricQuery> {
  const ambiguous = [...selectionOf(query.tags)].filter(([, value]) =>
    namesIn(value, chosen).some((name) => (chosen[name]?.length ?? 0) > 1),
  );
  if (!query.group_by && !query.merge) return {};
  const names = namesOf(query.group_by);
  const added = ambiguous.map(([tag]) => tag).filter((tag) => !names.includes(tag));
  return added.length > 0 ? { group_by: [...names, ...added].join(",") } : {};
}

function fillQuery(query: MetricQuery, name: string, value: string): MetricQuery {
  const fill = (text: string) => text.replace(referenceTo(name), () => value);
  const pairs = [...selectionOf(query.tags)].map(
    ([tag, value]) => [fill(tag), fill(value)] as const,
  );
  return { ...query, metric: fill(query.metric), tags: tagsOf(new Map(pairs)) };
}

function referenceTo(name: string): RegExp {
  return new RegExp(`\\$(?:\\{${name}\\}|${name}(?!\\w))`, "g");
}

/** Removes the pairs that contain this variable. */
function withoutVariable(tags: string, name: string): string {
  const pairs = [...selectionOf(tags)].filter(([, value]) => !referenceTo(name).test(value));
  return tagsOf(new Map(pairs));
}

const MATCHER = /(=~|!~|!=|=)(\s*)"((?:[^"\\]|\\.)*)"/g;

/** A matcher `="$host"` becomes a pattern for all or several values. */
function expandExpression(expression: string, chosen: ChosenValues): string {
  const matched = expression.replace(
    MATCHER,
    (whole, operator: string, space: string, text: string) => {
      const names = namesIn(text, chosen);
      if (names.length === 0) return whole;
      const isPlain = names.every((name) => chosen[name]?.length === 1);
      if (isPlain && !operator.includes("~")) {
        return `${operator}${space}"${fillWith(text, chosen, ([value]) => quoted(value ?? ""))}"`;
      }
      const pattern = operator.startsWith("!") ? "!~" : "=~";
      const filled = operator.includes("~") ? text : quoted(escapedAround(unquoted(text)));
      return `${pattern}${space}"${fillWith(filled, chosen, patternOf)}"`;
    },
  );
  return fillWith(matched, chosen, ([value]) => value ?? "");
}

function fillWith(
  text: string,
  chosen: ChosenValues,
  write: (values: readonly string[]) => string,
): string {
  return text.replace(REFERENCE, (whole, long?: string, short?: string) => {
    const name = long ?? short ?? "";
    return Object.hasOwn(chosen, name) ? write(chosen[name] ?? []) : whole;
  });
}

function patternOf(values: readonly string[]): string {
  if (values.length === 0) return ".*";
  const escaped = values.map((value) => quoted(escapedPattern(value)));
  return escaped.length === 1 ? escaped.join("") : `(${escaped.join("|")})`;
}

const escapedAround = (text: string) => text.replace(/[.*+?^()|[\]\\]/g, "\\$&");
const quoted = (text: string) =>
  text.replace(/[\\"]/g, "\\$&").replace(/\n/g, "\\n").replace(/\r/g, "\\r");
const unquoted = (text: string) => text.replace(/\\(["\\])/g, "$1");
