/**
 * A list of any length that scrolls with the page: rows of one height, of which the document
 * contains only the visible ones. Rows that become visible reuse nodes.
 */
import { useSignal } from "@preact/signals";
import { Fragment, type VNode } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { drawnRows, rowWindow, type RowWindow } from "./row-window";

interface Props {
  count: number;
  rowHeight: number;
  /** A row that stays in the document outside of the viewport; -1 for none. */
  active: number;
  /** Draws a row `top` pixels below the list's own top. */
  row: (index: number, top: number) => VNode;
}

export function VirtualRows({ count, rowHeight, active, row }: Props) {
  const { list, seen: visible } = useVisibleRows(count, rowHeight);
  return (
    <div
      ref={list}
      class="virtual-rows"
      role="rowgroup"
      style={{ height: `${count * rowHeight}px` }}
    >
      {drawnRows(visible, count, active).map(({ index, key }) => (
        <Fragment key={key}>{row(index, index * rowHeight)}</Fragment>
      ))}
    </div>
  );
}

/**
 * Tracks the visible rows. The listener lives as long as the list. It is created in a separate
 * scope: a scope shared with elements would keep the elements of each drawing in memory.
 */
function useVisibleRows(count: number, rowHeight: number) {
  const list = useRef<HTMLDivElement>(null);
  const visible = useSignal<RowWindow>(rowWindow(0, innerHeight, rowHeight, count));
  useLayoutEffect(() => {
    const update = () => {
      const above = -(list.current?.getBoundingClientRect().top ?? 0);
      const next = rowWindow(above, innerHeight, rowHeight, count);
      const { first, end } = visible.peek();
      if (next.first !== first || next.end !== end) visible.value = next;
    };
    update();
    addEventListener("scroll", update, { passive: true });
    addEventListener("resize", update);
    return () => {
      removeEventListener("scroll", update);
      removeEventListener("resize", update);
    };
  }, [count, rowHeight]);
  return { list, seen: visible.value };
}
