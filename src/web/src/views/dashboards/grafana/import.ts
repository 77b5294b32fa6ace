/** Converts a dashboard of Grafana, and names what has no equivalent. Pure. */
import { parseRange } from "../../../model/range";
import type { Dashboard } from "../../../api/types";
import { PANELS_MAX } from "../../dashboard/draft";
import { readPanels } from "./panels";
import { Notes, listOf, objectOf, textOf, type Json } from "./parts";
import { readVariables } from "./variables";

export interface Imported {
  dashboard: Dashboard;
  /** The parts that were not taken over. */
  notes: string[];
}

const TITLE_CHARS_MAX = 120;

export function importGrafana(value: unknown): Imported {
  const outer = objectOf(value);
  const source = "dashboard" in outer ? objectOf(outer["dashboard"]) : outer;
  const notes = new Notes();
  const variables = readVariables(source, notes);
  const panels = readPanels(source, variables, notes);
  for (const panel of panels.slice(PANELS_MAX)) {
    notes.add(`Panels beyond ${PANELS_MAX} are left out`, panel.title);
  }
  noteLosses(source, notes);
  const title = textOf(source["title"]).replace(/\s+/g, " ").trim().slice(0, TITLE_CHARS_MAX);
  const range = rangeOf(source);
  return {
    dashboard: {
      schema: 1,
      title: title || "Imported dashboard",
      ...(range ? { range } : {}),
      variables: variables.list,
      panels: panels.slice(0, PANELS_MAX),
    },
    notes: notes.lines(),
  };
}

/** `24h` for a range from `now-24h` to `now`. */
function rangeOf(source: Json): string | undefined {
  const time = objectOf(source["time"]);
  const [, length = ""] = /^now-(\d+\w+)$/.exec(textOf(time["from"])) ?? [];
  return textOf(time["to"]) === "now" ? parseRange(length) : undefined;
}

function noteLosses(source: Json, notes: Notes): void {
  const annotations = listOf(objectOf(source["annotations"])["list"]);
  for (const annotation of annotations.filter(({ builtIn }) => builtIn !== 1)) {
    if (annotation["type"] !== "dashboard" || "expr" in annotation)
      notes.add("Annotation queries are left out", textOf(annotation["name"]));
  }
  for (const link of listOf(source["links"]))
    notes.add("Links of the dashboard are left out", textOf(link["title"]));
  if (textOf(source["refresh"]) !== "") notes.add("The refresh interval is that of the reader");
}
