/** Which rows of a long list are drawn. */

export interface RowWindow {
  first: number;
  /** Behind the last. */
  end: number;
  /** Rows that any window has at most, the list's length aside. */
  places: number;
}

/** Rows drawn beyond what is seen, on each side. */
const BEYOND = 6;
/** The window moves by so many rows at a time, so that most steps of a scroll change nothing. */
const STEP = 4;

/** `above` pixels of the list lie above the view, which is `height` pixels high. */
export function rowWindow(
  above: number,
  height: number,
  rowHeight: number,
  count: number,
): RowWindow {
  const seen = Math.floor(Math.max(0, above) / rowHeight);
  const rows = Math.ceil(height / rowHeight);
  const first = Math.max(0, Math.floor((seen - BEYOND) / STEP) * STEP);
  const places = rows + 2 * BEYOND + STEP;
  const end = Math.min(count, first + places);
  return { first: Math.min(first, end), end, places };
}

/** A row that is drawn, under a key by which its nodes are found again. */
export interface DrawnRow {
  index: number;
  key: string | number;
}

/** The rows of a window, and the active one wherever it is; -1 for none. */
export function rowsDrawn(
  { first, end, places }: RowWindow,
  count: number,
  active: number,
): DrawnRow[] {
  const rows: DrawnRow[] = [];
  // A key for each place of the window, not for each row: nodes go round.
  for (let index = first; index < Math.min(end, count); index++) {
    if (index !== active) rows.push({ index, key: index % places });
  }
  if (active >= 0 && active < count) rows.push({ index: active, key: `active ${active}` });
  return rows;
}

/** The row that a key moves to; `undefined` for other keys. */
export function rowOfKey(
  key: string,
  active: number,
  count: number,
  page: number,
): number | undefined {
  const to = {
    ArrowDown: active + 1,
    ArrowUp: active - 1,
    PageDown: active + page,
    PageUp: active - page,
    Home: 0,
    End: count - 1,
  }[key];
  return to === undefined ? undefined : Math.max(0, Math.min(count - 1, to));
}
