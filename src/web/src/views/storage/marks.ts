/** The pointed cell: tree and bytes both mark it. */
import { signal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";

export interface Mark {
  /** The slot; -1 for the header. */
  slot: number;
  /** The column; the empty text for all columns of the slot. */
  column: string;
}

export const mark = signal<Mark | undefined>(undefined);

/** The mark of an element, or of its nearest container. */
function markOf(target: EventTarget | null): Mark | undefined {
  const element = target instanceof Element ? target.closest("[data-slot]") : null;
  if (!(element instanceof HTMLElement)) return undefined;
  return {
    slot: Number(element.dataset["slot"]),
    column: element.dataset["column"] ?? "",
  };
}

/** Points at a cell, or at nothing; pointing at the same cell changes nothing. */
export function point(to: Mark | undefined): void {
  const now = mark.peek();
  if (now?.slot !== to?.slot || now?.column !== to?.column) mark.value = to;
}

/**
 * Marks the pointed cell in the document: few elements change, and no element is rendered again.
 * Scrolls to the first marked element if none is visible.
 */
function applyMark(box: HTMLElement, to: Mark | undefined, follow: boolean): void {
  for (const old of box.querySelectorAll(".marked, .marked-slot")) {
    old.classList.remove("marked", "marked-slot");
  }
  if (!to) return;
  const ofSlot = [...box.querySelectorAll<HTMLElement>(`[data-slot="${to.slot}"]`)];
  const exact = ofSlot.filter((element) => (element.dataset["column"] ?? "") === to.column);
  const isWhole = to.column === "";
  for (const element of ofSlot) element.classList.add(isWhole ? "marked" : "marked-slot");
  for (const element of exact) element.classList.add("marked");
  const aims = exact.length > 0 ? exact : ofSlot;
  if (follow && aims.length > 0 && !aims.some((element) => isSeen(box, element))) {
    const aim = aims[0];
    if (aim) box.scrollTop += aim.getBoundingClientRect().top - middleOf(box);
  }
}

/**
 * Marks the pointed cell within a box; the returned function handles pointer events of the box.
 */
export function useMarks(box: { readonly current: HTMLElement | null }): (event: Event) => void {
  const isPointedHere = useRef(false);
  useSignalEffect(() => {
    const to = mark.value;
    if (box.current) applyMark(box.current, to, !isPointedHere.current);
  });
  return (event) => {
    isPointedHere.current = true;
    point(markOf(event.target));
    isPointedHere.current = false;
  };
}

function middleOf(box: HTMLElement): number {
  const { top, height } = box.getBoundingClientRect();
  return top + height / 3;
}

function isSeen(box: HTMLElement, element: HTMLElement): boolean {
  const outer = box.getBoundingClientRect();
  const inner = element.getBoundingClientRect();
  return inner.height > 0 && inner.top >= outer.top && inner.bottom <= outer.bottom;
}
