/** The rows of the fleet: a grid that scrolls with the page, by mouse and by keyboard. */
import { useSignal } from "@preact/signals";
import { useCallback, useEffect, useRef } from "preact/hooks";
import { navigate, hostPath, setParams } from "../../app/address";
import { Icon } from "../../parts/icon";
import { rowOfKey } from "../../parts/row-window";
import { VirtualRows } from "../../parts/virtual-rows";
import { narrow } from "../../parts/narrow";
import { nextSort } from "./choice";
import { COLUMN_NAMES } from "./columns";
import { HostRow } from "./host-row";
import { COLUMNS, type Choice, type Column, type Row } from "./order";

const ROW_HEIGHT = 44;
const CARD_HEIGHT = 96;
/** The height of the navigation, which covers the lower end on small screens. */
const NAVIGATION_HEIGHT = 60;

interface Props {
  rows: Row[];
  choice: Choice;
  /** True if sparklines are loaded, so that a missing sparkline is not shown as loading. */
  hasLines: boolean;
  /** Called when the reader begins or stops pointing at a row or moving through rows. */
  hold: (held: boolean) => void;
  remove: (host: string) => void;
}

export function FleetTable({ rows, choice, hasLines, hold, remove }: Props) {
  const isNarrow = narrow.value;
  const rowHeight = isNarrow ? CARD_HEIGHT : ROW_HEIGHT;
  const grid = useRef<HTMLDivElement>(null);
  const head = useRef<HTMLDivElement>(null);
  /** The host with the keyboard focus, in any row. */
  const focusedHost = useSignal<string | undefined>(undefined);
  const active =
    focusedHost.value === undefined
      ? -1
      : rows.findIndex(({ host }) => host.host === focusedHost.value);
  const held = useHolding(hold);

  const bringIntoView = (index: number) => {
    const list = grid.current?.querySelector(".virtual-rows");
    const headHeight = head.current?.getBoundingClientRect().height ?? 0;
    const rowTop = (list?.getBoundingClientRect().top ?? 0) + index * rowHeight;
    const low = innerHeight - (isNarrow ? NAVIGATION_HEIGHT : 0);
    // Whole pixels, rounded away from the edge: scroll positions have no fractions.
    if (rowTop < headHeight)
      scrollBy({ top: Math.floor(rowTop - headHeight), behavior: "instant" });
    else if (rowTop + rowHeight > low)
      scrollBy({ top: Math.ceil(rowTop + rowHeight - low), behavior: "instant" });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isGrid = event.target === grid.current;
    const row = rows[active];
    if (event.key === "Enter" && isGrid && row) {
      event.preventDefault();
      navigate(hostPath(row.host.host));
      return;
    }
    if (event.key === "ArrowRight" && isGrid) {
      event.preventDefault();
      grid.current?.querySelector<HTMLElement>(".active .col-menu button")?.focus();
      return;
    }
    if ((event.key === "ArrowLeft" || event.key === "Escape") && !isGrid) {
      event.preventDefault();
      grid.current?.focus();
      return;
    }
    const page = Math.max(1, Math.floor(innerHeight / rowHeight) - 2);
    const to = isGrid ? rowOfKey(event.key, active, rows.length, page) : undefined;
    if (to === undefined) return;
    event.preventDefault();
    focusedHost.value = rows[to]?.host.host;
    bringIntoView(to);
  };
  const onFocus = (event: FocusEvent) => {
    held.focus(true);
    if (event.target === grid.current && active < 0) focusedHost.value = rows[0]?.host.host;
  };
  const removeRow = useCallback(remove, [remove]);
  return (
    <div
      ref={grid}
      class={isNarrow ? "card fleet-table narrow" : "card fleet-table"}
      role="grid"
      aria-label="Hosts"
      aria-rowcount={rows.length + 1}
      aria-colcount={COLUMNS.length + 1}
      aria-activedescendant={active >= 0 ? `host-${active}` : undefined}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onFocusIn={onFocus}
      onFocusOut={() => held.focus(false)}
      onPointerEnter={(event) => held.pointer(event.pointerType === "mouse")}
      onPointerLeave={() => held.pointer(false)}
    >
      <div class="fleet-head" role="rowgroup" ref={head}>
        <div class="fleet-row" role="row" aria-rowindex={1}>
          {COLUMNS.map((column) => (
            <ColumnHead key={column} column={column} choice={choice} />
          ))}
          <div role="columnheader" class="cell col-menu">
            <span class="hidden-text">Menu</span>
          </div>
        </div>
      </div>
      <VirtualRows
        count={rows.length}
        rowHeight={rowHeight}
        active={active}
        row={(index, top) => (
          <HostRow
            row={rows[index]}
            index={index}
            top={top}
            isActive={index === active}
            hasLines={hasLines}
            remove={removeRow}
          />
        )}
      />
    </div>
  );
}

/** The order is held while the pointer is over the list, or the keyboard focus is in it. */
function useHolding(hold: (held: boolean) => void) {
  const by = useRef({ pointer: false, focus: false });
  useEffect(() => () => hold(false), []);
  const set = (what: "pointer" | "focus", is: boolean) => {
    by.current[what] = is;
    hold(by.current.pointer || by.current.focus);
  };
  return {
    pointer: (is: boolean) => set("pointer", is),
    focus: (is: boolean) => set("focus", is),
  };
}

function ColumnHead({ column, choice }: { column: Column; choice: Choice }) {
  const isSorted = choice.column === column;
  const direction = choice.descending ? "descending" : "ascending";
  // The order is in the address, so that a link preserves it, but adds no step to the browser's
  // history.
  const onClick = () => setParams({ sort: nextSort(choice, column) }, { replace: true });
  return (
    <div role="columnheader" class={`cell col-${column}`} aria-sort={isSorted ? direction : "none"}>
      <button type="button" class="sort" onClick={onClick}>
        {COLUMN_NAMES[column].short}
        {isSorted && <Icon name={choice.descending ? "down" : "up"} />}
      </button>
    </div>
  );
}
