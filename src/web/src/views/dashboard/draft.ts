/** Edits of a dashboard. Each edit returns a new dashboard, so that edits can be undone. */
import type {
  ChartPanel,
  Dashboard,
  Panel,
  PanelQuery,
  RowPanel,
  TextPanel,
  Variable,
} from "../../api/types";
import { freeArea, compactPanels } from "./grid";

export const PANELS_MAX = 200;

export function emptyDashboard(title: string): Dashboard {
  return { schema: 1, title, variables: [], panels: [] };
}

/** An unused identifier of a panel. */
export function unusedPanelId(panels: readonly Panel[]): string {
  for (let count = panels.length + 1; ; count++) {
    const id = `p${count}`;
    if (!panels.some((panel) => panel.id === id)) return id;
  }
}

export function chartPanel(title: string, queries: PanelQuery[]): ChartPanel {
  return { id: "", title, kind: "chart", queries, x: 0, y: 0, w: 6, h: 8 };
}

export function textPanel(): TextPanel {
  return { id: "", title: "", kind: "text", text: "", x: 0, y: 0, w: 6, h: 4 };
}

export function rowPanel(): RowPanel {
  return { id: "", title: "", kind: "row", x: 0, y: 0, w: 12, h: 1 };
}

/** Adds a panel at the first free area; a row goes below all panels. */
export function withPanel(dashboard: Dashboard, panel: Panel): Dashboard {
  const { panels } = dashboard;
  const last = Math.max(0, ...panels.map(({ y, h }) => y + h));
  const area =
    panel.kind === "row"
      ? { x: 0, y: last, w: panel.w, h: panel.h }
      : freeArea(panels, panel.w, panel.h);
  return { ...dashboard, panels: [...panels, { ...panel, ...area, id: unusedPanelId(panels) }] };
}

/** Copies a panel to the area directly below it. */
export function withCopy(dashboard: Dashboard, id: string): Dashboard {
  const { panels } = dashboard;
  const original = panels.find((panel) => panel.id === id);
  if (!original) return dashboard;
  const copy = {
    ...structuredClone(original),
    id: unusedPanelId(panels),
    y: original.y + original.h,
  };
  return { ...dashboard, panels: compactPanels([...panels, copy], copy.id) };
}

export function withoutPanel(dashboard: Dashboard, id: string): Dashboard {
  return {
    ...dashboard,
    panels: compactPanels(dashboard.panels.filter((panel) => panel.id !== id)),
  };
}

export function withReplacedPanel(dashboard: Dashboard, panel: Panel): Dashboard {
  const panels = dashboard.panels.map((other) => (other.id === panel.id ? panel : other));
  return { ...dashboard, panels };
}

export const isVariableName = (name: string) => /^\w{1,64}$/.test(name);

/** The first error in the variables; `undefined` without errors. */
export function variablesFault(variables: readonly Variable[]): string | undefined {
  const names = variables.map(({ name }) => name);
  const invalidName = names.find((name) => !isVariableName(name));
  if (invalidName !== undefined) {
    return invalidName === ""
      ? "Enter a name for each variable."
      : `“${invalidName}” cannot be a name: use letters, digits and _.`;
  }
  const duplicateName = names.find((name, at) => names.indexOf(name) !== at);
  if (duplicateName !== undefined) return `Two variables are called ${duplicateName}.`;
  return variables.some(({ tag }) => tag === "") ? "Enter a tag for each variable." : undefined;
}

/** Reads JSON of an exported dashboard; returns an error for anything else. */
export function readExport(text: string): object | string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    return `This is not JSON: ${cause instanceof Error ? cause.message : String(cause)}`;
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    return "This JSON is not a dashboard: an object with a title and panels is expected.";
  }
  return parsed;
}

/** The dashboard in an export; the daemon reports errors within it, with their position. */
export function exportedDashboard(parsed: object): Dashboard {
  return ("dashboard" in parsed ? parsed.dashboard : parsed) as Dashboard;
}
