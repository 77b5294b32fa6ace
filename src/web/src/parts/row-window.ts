/** The window of drawn rows in a long list. */

export interface RowWindow {
  first: number;
  /** The first row after the window. */
  end: number;
  /** The maximum number of rows of a window, for a list of any length. */
  rowsMax: number;
}

/** The number of rows drawn beyond the visible rows, on each side. */
const EXTRA_ROWS = 6;
/** The window moves in steps of this many rows, so that most scroll events change nothing. */
const STEP_ROWS = 4;

/** Returns the window for a viewport of `height` pixels, `above` pixels below the list's top. */
export function rowWindow(
  above: number,
  height: number,
  rowHeight: number,
  count: number,
): RowWindow {
  const firstVisible = Math.floor(Math.max(0, above) / rowHeight);
  const rows = Math.ceil(height / rowHeight);
  const first = Math.max(0, Math.floor((firstVisible - EXTRA_ROWS) / STEP_ROWS) * STEP_ROWS);
  const rowsMax = rows + 2 * EXTRA_ROWS + STEP_ROWS;
  const end = Math.min(count, first + rowsMax);
  return { first: Math.min(first, end), end, rowsMax };
}

/** A drawn row, with a key that identifies its nodes. */
export interface DrawnRow {
  index: number;
  key: string | number;
}

/** Returns the rows of a window and the active row, which may be outside; -1 for none. */
export function drawnRows(
  { first, end, rowsMax }: RowWindow,
  count: number,
  active: number,
): DrawnRow[] {
  const rows: DrawnRow[] = [];
  // Keys belong to positions in the window, not to rows: nodes are reused.
  for (let index = first; index < Math.min(end, count); index++) {
    if (index !== active) rows.push({ index, key: index % rowsMax });
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
  const target = {
    ArrowDown: active + 1,
    ArrowUp: active - 1,
    PageDown: active + page,
    PageUp: active - page,
    Home: 0,
    End: count - 1,
  }[key];
  return target === undefined ? undefined : Math.max(0, Math.min(count - 1, target));
}
