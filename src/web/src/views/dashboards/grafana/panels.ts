/** Grafana's panels as rows, charts, values and texts. */
import type { ChartPanel, Panel, PromqlQuery, RowPanel, TextPanel } from "../../../api/types";
import { COLUMNS, HEIGHT_MAX } from "../../dashboard/grid";
import { kindOf, looksOf } from "./looks";
import { plainPromql } from "./metricsql";
import { listOf, numberOf, objectOf, textOf, type Json, type Notes } from "./parts";
import { unitWord } from "./units";
import type { Variables } from "./variables";

/** Grafana's number of columns. */
const GRAFANA_COLUMNS = 24;
/** The smallest charts that are readable: a legend of several series needs space, too. */
const CHART_MIN = { w: 3, h: 6 };
const CHART_OF_SEVERAL_MIN = { w: 3, h: 8 };
/** The smallest single values and texts. */
const VALUE_MIN = { w: 2, h: 3 };
const TEXT_MIN = { w: 2, h: 2 };
const QUERIES_MAX = 20;
const TITLE_CHARS_MAX = 120;
const EXPRESSION_CHARS_MAX = 4000;
const TEXT_CHARS_MAX = 10_000;

/** Reads all panels in their order. */
export function readPanels(dashboard: Json, variables: Variables, notes: Notes): Panel[] {
  const panels: Panel[] = [];
  const flow = new Flow();
  for (const panel of inOrder(dashboard)) {
    const read = readPanel(panel, variables, notes);
    if (read) panels.push({ ...read, ...flow.place(read), id: `p${panels.length + 1}` });
  }
  return panels;
}

/** Places panels from left to right and from top to bottom. */
class Flow {
  private x = 0;
  private y = 0;
  private lineHeight = 0;

  place({ w, h }: { w: number; h: number }): { x: number; y: number } {
    if (this.x + w > COLUMNS) {
      this.y += this.lineHeight;
      [this.x, this.lineHeight] = [0, 0];
    }
    const area = { x: this.x, y: this.y };
    this.x += w;
    this.lineHeight = Math.max(this.lineHeight, h);
    return area;
  }
}

/** All panels by their position, with the panels of folded rows and of old rows. */
function inOrder(dashboard: Json): Json[] {
  const oldRows = listOf(dashboard["rows"]).flatMap((row) => [
    {
      type: "row",
      title: row["showTitle"] === false ? "" : row["title"],
      repeat: row["repeat"],
      collapsed: row["collapse"],
    },
    ...listOf(row["panels"]).map((panel): Json => {
      const w = numberOf(panel["span"], 12) * 2;
      return { gridPos: { w, h: 8 }, ...panel };
    }),
  ]);
  const place = (panel: Json, side: string) => numberOf(objectOf(panel["gridPos"])[side], 0);
  const byPlace = (panels: Json[]) =>
    panels.sort((a, b) => place(a, "y") - place(b, "y") || place(a, "x") - place(b, "x"));
  const panels = byPlace(listOf(dashboard["panels"])).flatMap((panel) => [
    panel,
    ...byPlace(listOf(panel["panels"])),
  ]);
  return [...panels, ...oldRows];
}

function readPanel(panel: Json, variables: Variables, notes: Notes): Panel | undefined {
  const type = textOf(panel["type"]);
  const title = variables.fill(textOf(panel["title"])).slice(0, TITLE_CHARS_MAX);
  const name = title || `panel ${textOf(panel["id"]) || type}`;
  const repeat = repeatOf(panel, name, variables, notes);
  if (type === "row") return rowPanel(title, panel, repeat);
  if (type === "text") return { ...textPanel(title, panel), ...repeat };
  const queries = readQueries(panel, name, variables.fill, notes);
  if (queries.length === 0) {
    notes.add("Panels without a PromQL query are left out", name);
    return undefined;
  }
  noteLosses(panel, name, notes);
  return { ...valuesPanel(title, panel, queries, name, notes), ...repeat };
}

/** The variable for which a panel is repeated. */
function repeatOf(
  panel: Json,
  name: string,
  { list }: Variables,
  notes: Notes,
): { repeat?: string } {
  const repeat = textOf(panel["repeat"]);
  if (repeat === "") return {};
  if (list.some((variable) => variable.name === repeat)) return { repeat };
  notes.add("Panels are not repeated by a variable with fixed values", name);
  return {};
}

const AREA = { id: "", x: 0, y: 0 };

function rowPanel(title: string, panel: Json, repeat: { repeat?: string }): RowPanel | undefined {
  if (title === "") return undefined;
  const folded = panel["collapsed"] === true ? { folded: true } : {};
  return { ...AREA, kind: "row", title, w: COLUMNS, h: 1, ...repeat, ...folded };
}

function textPanel(title: string, panel: Json): TextPanel {
  const text = textOf(objectOf(panel["options"])["content"]) || textOf(panel["content"]);
  return {
    ...AREA,
    kind: "text",
    title,
    text: text.slice(0, TEXT_CHARS_MAX),
    ...sizeOf(panel, TEXT_MIN),
  };
}

function valuesPanel(
  title: string,
  panel: Json,
  queries: PromqlQuery[],
  name: string,
  notes: Notes,
): ChartPanel {
  const known = kindOf(panel);
  if (!known) notes.add(`Panels of type ${textOf(panel["type"])} show lines`, name);
  const kind = known ?? "chart";
  const { unit, stacking, scale } = drawingOf(panel);
  const word = unitWord(unit);
  const hasLines = kind === "chart" || kind === "heatmap";
  const chartMin = queries.length > 1 ? CHART_OF_SEVERAL_MIN : CHART_MIN;
  return {
    ...AREA,
    kind,
    title,
    queries,
    ...sizeOf(panel, hasLines ? chartMin : VALUE_MIN),
    ...(kind === "chart" && stacking ? { stacked: true } : {}),
    ...(hasLines && scale ? { log: true } : {}),
    ...(word ? { unit: word } : {}),
    ...looksOf(panel, kind),
  };
}

/** Unit, stacking and scale of panels of today, and of Grafana 7 and earlier. */
function drawingOf(panel: Json): { unit: string; stacking: boolean; scale: boolean } {
  const defaults = objectOf(objectOf(panel["fieldConfig"])["defaults"]);
  const custom = objectOf(defaults["custom"]);
  const [axis = {}] = listOf(panel["yaxes"]);
  const stackingMode = textOf(objectOf(custom["stacking"])["mode"]);
  return {
    unit: textOf(defaults["unit"]) || textOf(axis["format"]) || textOf(panel["format"]),
    stacking: panel["stack"] === true || (stackingMode !== "" && stackingMode !== "none"),
    scale:
      textOf(objectOf(custom["scaleDistribution"])["type"]) === "log" ||
      numberOf(axis["logBase"], 1) > 1,
  };
}

function sizeOf(panel: Json, min: { w: number; h: number }): { w: number; h: number } {
  const area = objectOf(panel["gridPos"]);
  const w = Math.round((numberOf(area["w"], GRAFANA_COLUMNS / 2) * COLUMNS) / GRAFANA_COLUMNS);
  const h = Math.round(numberOf(area["h"], 8));
  return {
    w: Math.min(Math.max(w, min.w), COLUMNS),
    h: Math.min(Math.max(h, min.h), HEIGHT_MAX),
  };
}

function readQueries(
  panel: Json,
  name: string,
  fill: (expression: string) => string,
  notes: Notes,
): PromqlQuery[] {
  const queries: PromqlQuery[] = [];
  for (const target of listOf(panel["targets"])) {
    const expression = plainPromql(fill(textOf(target["expr"]).trim()));
    if (expression === "") {
      notes.add("Queries that are not in PromQL are left out", name);
    } else if (expression.length > EXPRESSION_CHARS_MAX || queries.length >= QUERIES_MAX) {
      notes.add(`Queries beyond ${QUERIES_MAX} of a panel, or too long, are left out`, name);
    } else {
      const legend = fill(textOf(target["legendFormat"]));
      queries.push({
        kind: "promql",
        expression,
        ...(legend !== "" && legend !== "__auto" ? { legend } : {}),
        ...(target["hide"] === true ? { hidden: true } : {}),
      });
    }
  }
  return queries;
}

/** Names the settings of a panel that charts lack. */
function noteLosses(panel: Json, name: string, notes: Notes): void {
  const config = objectOf(panel["fieldConfig"]);
  if (listOf(config["overrides"]).length > 0 || listOf(panel["seriesOverrides"]).length > 0)
    notes.add("Settings of single series (colours, axes, units) are left out", name);
  if (listOf(panel["transformations"]).length > 0) notes.add("Transformations are left out", name);
  if (listOf(panel["links"]).length > 0) notes.add("Links of panels are left out", name);
}
