/**
 * The grid of panels: 12 columns, any number of rows. Panels never overlap, and each panel is at
 * the top or directly below another panel.
 */

export const COLUMNS = 12;
export const ROW_PX = 40;
export const WIDTH_MIN = 2;
export const HEIGHT_MIN = 2;
export const HEIGHT_MAX = 40;

export interface GridArea {
  x: number;
  y: number;
  w: number;
  h: number;
}

export interface PlacedPanel extends GridArea {
  id: string;
  kind?: string;
}

/** The area, limited to the columns and to valid sizes; a row of panels is one line. */
export function clampArea(area: GridArea & { kind?: string }): GridArea {
  if (area.kind === "row") return { x: 0, y: Math.max(0, Math.round(area.y)), w: COLUMNS, h: 1 };
  const w = clamp(area.w, WIDTH_MIN, COLUMNS);
  const h = clamp(area.h, HEIGHT_MIN, HEIGHT_MAX);
  return { w, h, x: clamp(area.x, 0, COLUMNS - w), y: Math.max(0, Math.round(area.y)) };
}

function clamp(value: number, min: number, max: number): number {
  return Math.min(Math.max(Math.round(value), min), max);
}

export function overlaps(a: GridArea, b: GridArea): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

/**
 * Moves all panels up as far as possible; of panels in the same row, `first` is placed first.
 */
export function compactPanels<P extends PlacedPanel>(panels: readonly P[], first?: string): P[] {
  const order = [...panels].sort((a, b) => {
    const isFirst = Number(b.id === first) - Number(a.id === first);
    return a.y - b.y || isFirst || a.x - b.x;
  });
  const placed = new Map<string, P>();
  for (const panel of order) {
    const area = clampArea(panel);
    let y = 0;
    for (const other of placed.values()) {
      const isAbove = other.x < area.x + area.w && area.x < other.x + other.w;
      if (isAbove) y = Math.max(y, other.y + other.h);
    }
    placed.set(panel.id, { ...panel, ...area, y });
  }
  return panels.flatMap((panel) => placed.get(panel.id) ?? []);
}

/** Moves or resizes a panel; panels in its direction are moved aside. */
export function placePanel<P extends PlacedPanel>(
  panels: readonly P[],
  id: string,
  target: Partial<GridArea>,
): P[] {
  const original = panels.find((panel) => panel.id === id);
  if (!original) return [...panels];
  const area = clampArea({ ...original, ...target });
  const overlapped = panels.filter((panel) => panel.id !== id && overlaps(panel, area));
  const [other] = overlapped;
  const isSwap = overlapped.length === 1 && other && other.w === area.w && other.h === area.h;
  // Panels of equal size swap places: otherwise the replaced panel would leave a gap.
  const isMovedAside = isSwap && other.y === original.y && coversHalf(area, other);
  const moved = panels.map((panel) => {
    if (panel.id === id) return { ...panel, ...area, ...(isMovedAside ? positionOf(other) : {}) };
    return isMovedAside && panel === other ? { ...panel, ...positionOf(original) } : panel;
  });
  return compactPanels(moved, id);
}

const positionOf = ({ x, y }: GridArea) => ({ x, y });

/** Returns true if `a` covers more than half of `b`. */
function coversHalf(a: GridArea, b: GridArea): boolean {
  return Math.abs(a.x - b.x) * 2 < b.w && Math.abs(a.y - b.y) * 2 < b.h;
}

export type Direction = "left" | "right" | "up" | "down";

/** Moves a panel one step: to the next area in that direction that changes the layout. */
export function movePanel<P extends PlacedPanel>(
  panels: readonly P[],
  id: string,
  direction: Direction,
): P[] {
  const original = panels.find((panel) => panel.id === id);
  if (!original) return [...panels];
  if (direction === "left" || direction === "right") {
    return placePanel(panels, id, { x: original.x + (direction === "left" ? -1 : 1) });
  }
  const last = Math.max(...panels.map((panel) => panel.y + panel.h));
  const step = direction === "up" ? -1 : 1;
  for (let y = original.y + step; y >= 0 && y <= last; y += step) {
    const next = placePanel(panels, id, { y });
    const result = next.find((panel) => panel.id === id);
    if (result && Math.sign(result.y - original.y) === step) return next;
  }
  return [...panels];
}

/** Resizes a panel by one column or row. */
export function resizePanel<P extends PlacedPanel>(
  panels: readonly P[],
  id: string,
  direction: Direction,
): P[] {
  const original = panels.find((panel) => panel.id === id);
  if (!original) return [...panels];
  const w = original.w + (direction === "right" ? 1 : direction === "left" ? -1 : 0);
  const h = original.h + (direction === "down" ? 1 : direction === "up" ? -1 : 0);
  return placePanel(panels, id, { w: Math.min(w, COLUMNS - original.x), h });
}

/** The topmost free area of this size, which may be below all panels. */
export function freeArea(panels: readonly PlacedPanel[], w: number, h: number): GridArea {
  const last = Math.max(0, ...panels.map((panel) => panel.y + panel.h));
  for (let y = 0; y <= last; y++) {
    for (let x = 0; x + w <= COLUMNS; x++) {
      const area = { x, y, w, h };
      if (!panels.some((panel) => overlaps(panel, area))) return area;
    }
  }
  return { x: 0, y: last, w, h };
}

/** The announcement for screen readers. */
export function areaText(area: GridArea): string {
  return (
    `column ${area.x + 1} of ${COLUMNS}, row ${area.y + 1}, ` +
    `${area.w} columns wide, ${area.h} rows high`
  );
}
