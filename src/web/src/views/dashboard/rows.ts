/** The panels that a reader sees: rows fold, and panels and rows repeat for values. Pure. */
import type { Panel, RowPanel } from "../../api/types";
import type { ChosenValues } from "../../queries/variables";
import { COLUMNS, overlaps } from "./grid";

/** A panel at its shown place, with the values of its repetition. */
export interface ShownPanel {
  panel: Panel;
  values: ChosenValues;
}

/** The maximum number of repetitions of a panel or row. */
export const REPEATS_MAX = 20;

interface Section {
  row: RowPanel | undefined;
  panels: Panel[];
}

/** The panels below each row, up to the next row. */
function sectionsOf(panels: readonly Panel[]): Section[] {
  const sections: Section[] = [{ row: undefined, panels: [] }];
  for (const panel of [...panels].sort((a, b) => a.y - b.y || a.x - b.x)) {
    if (panel.kind === "row") sections.push({ row: panel, panels: [] });
    else sections.at(-1)?.panels.push(panel);
  }
  return sections;
}

/** Lays out the shown panels; `valuesOf` returns the values of a variable to repeat for. */
export function shownPanels(
  panels: readonly Panel[],
  valuesOf: (variable: string) => readonly string[],
  isFolded: (row: RowPanel) => boolean,
): ShownPanel[] {
  const shown: ShownPanel[] = [];
  const bottom = () => Math.max(0, ...shown.map(({ panel: { y, h } }) => y + h));
  for (const { row, panels: below } of sectionsOf(panels)) {
    const repeats = repeatsOf(row, valuesOf);
    for (const [k, values] of repeats.entries()) {
      const base = bottom();
      const copy = (panel: Panel): Panel =>
        repeats.length > 1 ? { ...panel, id: `${panel.id}~r${k}` } : panel;
      const shownRow = row && (copy({ ...row, x: 0, y: base, w: COLUMNS, h: 1 }) as RowPanel);
      if (shownRow) shown.push({ panel: shownRow, values });
      if (shownRow && isFolded(shownRow)) continue;
      const top = Math.min(...below.map(({ y }) => y));
      const from = base + (row ? 1 : 0) - top;
      const placed = placeRepeated(below.map(copy), valuesOf, values);
      for (const { panel, values } of placed)
        shown.push({ panel: { ...panel, y: panel.y + from }, values });
    }
  }
  return shown;
}

/** The values of each repetition; one without values when a panel is not repeated. */
function repeatsOf(
  panel: Panel | undefined,
  valuesOf: (variable: string) => readonly string[],
): ChosenValues[] {
  const name = panel?.repeat;
  const values = name === undefined ? [] : valuesOf(name).slice(0, REPEATS_MAX);
  return name === undefined || values.length === 0
    ? [{}]
    : values.map((value) => ({ [name]: [value] }));
}

/** Places the repetitions of panels side by side; panels below move down. */
function placeRepeated(
  panels: readonly Panel[],
  valuesOf: (variable: string) => readonly string[],
  outer: ChosenValues,
): ShownPanel[] {
  const placed: ShownPanel[] = [];
  for (const panel of panels) {
    const perLine = Math.max(Math.floor((COLUMNS - panel.x) / panel.w), 1);
    // A row has already chosen the value.
    const isChosen = panel.repeat !== undefined && panel.repeat in outer;
    const repeats = isChosen ? [{}] : repeatsOf(panel, valuesOf);
    repeats.forEach((values, k) => {
      const area = {
        ...panel,
        x: panel.x + (k % perLine) * panel.w,
        y: panel.y + Math.floor(k / perLine) * panel.h,
        id: repeats.length > 1 ? `${panel.id}~${k}` : panel.id,
      };
      while (placed.some((other) => overlaps(other.panel, area))) area.y += 1;
      placed.push({ panel: area, values: { ...outer, ...values } });
    });
  }
  return placed;
}
