/**
 * A list of any length that scrolls with the page: rows of one height, of which only those in view
 * are in the document. Nodes are used again for the rows that come into view.
 */
import { useSignal } from "@preact/signals";
import { Fragment, type VNode } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { rowWindow, type RowWindow } from "./row-window";

interface Props {
  count: number;
  rowHeight: number;
  /** A row that stays in the document when it is out of view; -1 for none. */
  active: number;
  /** Draws a row `top` pixels below the list's own top. */
  row: (index: number, top: number) => VNode;
}

export function VirtualRows({ count, rowHeight, active, row }: Props) {
  const list = useRef<HTMLDivElement>(null);
  const shown = useSignal<RowWindow>(rowWindow(0, innerHeight, rowHeight, count));
  useLayoutEffect(() => {
    const look = () => {
      const above = -(list.current?.getBoundingClientRect().top ?? 0);
      const next = rowWindow(above, innerHeight, rowHeight, count);
      const { first, end } = shown.peek();
      if (next.first !== first || next.end !== end) shown.value = next;
    };
    look();
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, [count, rowHeight]);
  const { first, end, places } = shown.value;
  const rows: VNode[] = [];
  const add = (index: number, key: string | number) =>
    rows.push(<Fragment key={key}>{row(index, index * rowHeight)}</Fragment>);
  // A key for each place of the window, not for each row: nodes go round.
  for (let index = first; index < Math.min(end, count); index++) {
    if (index !== active) add(index, index % places);
  }
  if (active >= 0 && active < count) add(active, `active ${active}`);
  return (
    <div
      ref={list}
      class="virtual-rows"
      role="rowgroup"
      style={{ height: `${count * rowHeight}px` }}
    >
      {rows}
    </div>
  );
}
