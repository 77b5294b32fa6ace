/** The reader's choices in the fleet, read from the address and written to it. */
import type { HostState } from "../../api/types";
import { COLUMNS, descendingFirst, type Choice, type Column } from "./order";

const STATES: readonly string[] = ["up", "late", "down", "stopped"];

export function choiceOf(params: URLSearchParams): Choice {
  const state = params.get("state") ?? "";
  const sort = params.get("sort") ?? "";
  const descending = sort.startsWith("-");
  const columnName = descending ? sort.slice(1) : sort;
  const column = COLUMNS.find((column) => column === columnName);
  return {
    q: params.get("q") ?? "",
    state: STATES.includes(state) ? (state as HostState) : undefined,
    tags: tagsOf(params.get("tags") ?? ""),
    column: column ?? "state",
    descending: column === undefined ? true : descending,
  };
}

/** `cpu`, or `-cpu` in descending order; the default order, worst states first, is not written. */
export function sortParam(column: Column, descending: boolean): string | undefined {
  if (column === "state" && descending) return undefined;
  return descending ? `-${column}` : column;
}

/** The order after a click on a column's head: another column, or the reversed order. */
export function nextSort(choice: Choice, column: Column): string | undefined {
  const descending = choice.column === column ? !choice.descending : descendingFirst(column);
  return sortParam(column, descending);
}

function escapeTagPart(text: string): string {
  return text.replace(/[%,=]/g, (letter) => encodeURIComponent(letter));
}

function unescapeTagPart(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** `role=db,role=cache,dc=eu`; commas, equal and percent signs within are escaped. */
export function tagsOf(param: string): Map<string, Set<string>> {
  const tags = new Map<string, Set<string>>();
  for (const pair of param.split(",")) {
    const at = pair.indexOf("=");
    if (at < 1) continue;
    const name = unescapeTagPart(pair.slice(0, at));
    const values = tags.get(name) ?? new Set();
    values.add(unescapeTagPart(pair.slice(at + 1)));
    tags.set(name, values);
  }
  return tags;
}

export function tagsParam(tags: Choice["tags"]): string {
  return [...tags]
    .flatMap(([name, values]) =>
      [...values].map((value) => `${escapeTagPart(name)}=${escapeTagPart(value)}`),
    )
    .join(",");
}

/** The tags with a value added, or removed if it was chosen. */
export function withTag(tags: Choice["tags"], name: string, value: string): string {
  const changed = new Map([...tags].map(([name, values]) => [name, new Set(values)]));
  const values = changed.get(name) ?? new Set<string>();
  if (!values.delete(value)) values.add(value);
  if (values.size > 0) changed.set(name, values);
  else changed.delete(name);
  return tagsParam(changed);
}
