/** The annotations of one chart, among those of all hosts. Pure. */
import type { Annotation, PanelQuery, Tags } from "../api/types";

/** The tags of a drawn series. */
interface Tagged {
  tags: Tags;
}

/**
 * The annotations that concern a chart: without tags, or with the tags of a drawn series. Events of
 * a host, such as restarts, are drawn only on charts of that host; annotations of users are also
 * drawn on charts of series without their tags, such as sums.
 */
export function annotationsOf(
  annotations: readonly Annotation[],
  series: readonly Tagged[],
  queries: readonly PanelQuery[],
): Annotation[] {
  const texts = queries.map((query) => (query.kind === "metric" ? query.tags : query.expression));
  // Few distinct annotations and many series: each tag's values are looked up once.
  const valuesOf = new Map<string, Set<string | undefined>>();
  const drawnValues = (name: string) => {
    let values = valuesOf.get(name);
    if (!values) {
      values = new Set(series.map(({ tags }) => tags[name]));
      valuesOf.set(name, values);
    }
    return values;
  };
  const concerns = ({ source, tags }: Annotation) =>
    Object.entries(tags).every(([name, value]) => {
      const values = drawnValues(name);
      if (values.has(value)) return true;
      if (!values.has(undefined)) return false;
      return source === "user" || texts.some((text) => namesValue(text, name, value));
    });
  return annotations.filter(concerns);
}

/** Returns true if tags or an expression select this value: `host=web1`, `{host="web1"}`. */
function namesValue(text: string, name: string, value: string): boolean {
  for (let at = text.indexOf(value); at >= 0; at = text.indexOf(value, at + 1)) {
    const before = text.slice(0, at).replace(/\s*=\s*"?$/, "\n");
    const isNamed = before.endsWith(`${name}\n`) || before.endsWith(`${name}"\n`);
    const letterBefore = before.slice(0, before.lastIndexOf(name)).at(-1) ?? "";
    const letterAfter = text[at + value.length] ?? "";
    if (isNamed && !/\w/.test(letterBefore) && /^[",}\s]?$/.test(letterAfter)) return true;
  }
  return false;
}

/** A period of time in a colour's group. */
export interface Period {
  source: Annotation["source"];
  start: number;
  end: number;
}

/** The periods of annotations; overlapping periods of a source are one, so that shades do not add. */
export function periodsOf(annotations: readonly Annotation[]): Period[] {
  const periods = annotations
    .flatMap(({ source, time, end }) => (end === null ? [] : [{ source, start: time, end }]))
    .sort((a, b) => a.start - b.start);
  const joined: Period[] = [];
  const last = new Map<Period["source"], Period>();
  for (const period of periods) {
    const previous = last.get(period.source);
    if (previous && period.start <= previous.end) {
      previous.end = Math.max(previous.end, period.end);
      continue;
    }
    last.set(period.source, period);
    joined.push(period);
  }
  return joined;
}
