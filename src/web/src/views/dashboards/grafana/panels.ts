/** Grafana's panels as charts and texts. */
import type { ChartPanel, Panel, PromqlQuery, TextPanel } from "../../../api/types";
import { COLUMNS, HEIGHT_MAX } from "../../dashboard/grid";
import { listOf, numberOf, objectOf, textOf, type Json, type Notes } from "./parts";
import { unitWord } from "./units";
import { withPlainReferences } from "./variables";

/** Grafana's number of columns. */
const GRAFANA_COLUMNS = 24;
/** The smallest charts that are readable: a legend of several series needs space, too. */
const CHART_MIN = { w: 3, h: 6 };
const CHART_OF_SEVERAL_MIN = { w: 3, h: 8 };
/** The height of a heading. */
const HEADING_HEIGHT = 2;
const QUERIES_MAX = 20;
const TITLE_CHARS_MAX = 120;
const EXPRESSION_CHARS_MAX = 4000;
const TEXT_CHARS_MAX = 10_000;

/** Panels of lines, and panels that show other forms of the same values. */
const LINE_TYPES = ["timeseries", "graph"];

/** Reads all panels in their order; rows become headings above their panels. */
export function readPanels(
  dashboard: Json,
  fill: (expression: string) => string,
  notes: Notes,
): Panel[] {
  const panels: Panel[] = [];
  const flow = new Flow();
  for (const panel of inOrder(dashboard)) {
    const read = readPanel(panel, fill, notes);
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
    { type: "row", title: row["title"], gridPos: { w: GRAFANA_COLUMNS } },
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

function readPanel(
  panel: Json,
  fill: (expression: string) => string,
  notes: Notes,
): Panel | undefined {
  const type = textOf(panel["type"]);
  const title = withPlainReferences(textOf(panel["title"])).slice(0, TITLE_CHARS_MAX);
  const name = title || `panel ${textOf(panel["id"]) || type}`;
  if (textOf(panel["repeat"]) !== "") notes.add("Panels are not repeated by a variable", name);
  if (type === "row") return heading(title);
  if (type === "text") return textPanel(title, panel);
  const queries = readQueries(panel, name, fill, notes);
  if (queries.length === 0) {
    notes.add("Panels without a PromQL query are left out", name);
    return undefined;
  }
  if (!LINE_TYPES.includes(type)) notes.add(`Panels of type ${type} show lines`, name);
  noteLosses(panel, name, notes);
  return chart(title, panel, queries);
}

const AREA = { id: "", x: 0, y: 0 };

function heading(title: string): TextPanel | undefined {
  if (title === "") return undefined;
  return { ...AREA, kind: "text", title, text: "", w: COLUMNS, h: HEADING_HEIGHT };
}

function textPanel(title: string, panel: Json): TextPanel {
  const text = textOf(objectOf(panel["options"])["content"]) || textOf(panel["content"]);
  return {
    ...AREA,
    kind: "text",
    title,
    text: text.slice(0, TEXT_CHARS_MAX),
    ...sizeOf(panel, { w: 2, h: HEADING_HEIGHT }),
  };
}

function chart(title: string, panel: Json, queries: PromqlQuery[]): ChartPanel {
  const { unit, stacking, scale } = drawingOf(panel);
  const word = unitWord(unit);
  return {
    ...AREA,
    kind: "chart",
    title,
    queries,
    ...sizeOf(panel, queries.length > 1 ? CHART_OF_SEVERAL_MIN : CHART_MIN),
    ...(stacking ? { stacked: true } : {}),
    ...(scale ? { log: true } : {}),
    ...(word ? { unit: word } : {}),
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
    const expression = fill(textOf(target["expr"]).trim());
    if (expression === "") {
      notes.add("Queries that are not in PromQL are left out", name);
    } else if (expression.length > EXPRESSION_CHARS_MAX || queries.length >= QUERIES_MAX) {
      notes.add(`Queries beyond ${QUERIES_MAX} of a panel, or too long, are left out`, name);
    } else {
      const legend = withPlainReferences(textOf(target["legendFormat"]));
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
  const style = objectOf(objectOf(objectOf(config["defaults"])["custom"])["thresholdsStyle"]);
  const mode = textOf(style["mode"]);
  if ((mode !== "" && mode !== "off") || listOf(panel["thresholds"]).length > 0)
    notes.add("Thresholds are not drawn; charts show those of alert rules", name);
  if (listOf(config["overrides"]).length > 0 || listOf(panel["seriesOverrides"]).length > 0)
    notes.add("Settings of single series (colours, axes, units) are left out", name);
  if (listOf(panel["transformations"]).length > 0) notes.add("Transformations are left out", name);
  if (listOf(panel["links"]).length > 0) notes.add("Links of panels are left out", name);
}
