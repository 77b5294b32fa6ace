/**
 * The box next to the pointer: the values of the series nearest to it, the largest first, and the
 * annotations at its time. Written outside of components, at most once a frame.
 */
import { escapeReordering } from "../model/harmless";
import { headAndTail } from "./labels";

/** The maximum number of series in the box. */
export const TIP_ROWS_MAX = 10;
/** The width of the box, as in the styles, and its distance from the pointer. */
const WIDTH_PX = 250;
const AWAY_PX = 14;

export interface TipRow {
  colour: string;
  label: string;
  value: string;
  isNear: boolean;
}

export interface TipContent {
  time: string;
  rows: TipRow[];
  /** The number of other series with a value. */
  moreCount: number;
  /** Min and max of the nearest series. */
  band: string;
  annotations: string;
}

/** A series at the slot under the pointer. */
export interface Candidate {
  index: number;
  value: number;
  /** Pixels from the pointer. */
  distance: number;
}

/** The candidates nearest to the pointer, the largest value first, and the nearest one. */
export function nearestFirst(candidates: readonly Candidate[], rowsMax = TIP_ROWS_MAX) {
  const byDistance = [...candidates].sort((a, b) => a.distance - b.distance);
  const shown = byDistance.slice(0, rowsMax);
  return { shown: shown.sort((a, b) => b.value - a.value), nearest: byDistance[0] };
}

/** A point of a plot, for the place of the box. */
export interface TipPlace {
  /** Pixels from the left and the top of the plot, and its size. */
  x: number;
  y: number;
  width: number;
  height: number;
  /** The free pixels of the viewport above and below the point. */
  above: number;
  below: number;
}

/**
 * Returns true if the box belongs above the point: on the side with more space in the plot, unless
 * only the other side has room for it.
 */
export function isTipAbove(
  { y, height, above, below }: Omit<TipPlace, "x" | "width">,
  tipHeight: number,
): boolean {
  const hasRoom = (free: number) => free >= tipHeight + AWAY_PX;
  return y > height / 2 ? hasRoom(above) || !hasRoom(below) : hasRoom(above) && !hasRoom(below);
}

interface RowElements {
  root: HTMLElement;
  swatch: HTMLElement;
  head: Text;
  tail: Text;
  value: Text;
}

export class Tip {
  private readonly time = textIn("plot-tip-time");
  private readonly list = element("div", "plot-tip-rows");
  private readonly more = textIn("plot-tip-more");
  private readonly band = textIn("plot-tip-more");
  private readonly notes = textIn("plot-tip-notes");
  private readonly rows: RowElements[] = [];
  private place: TipPlace | undefined;
  /** The height of the box, written by the observer: reading it while drawing would cost a layout. */
  private height = 0;
  private readonly observer = new ResizeObserver((entries) => {
    this.height = entries.at(-1)?.borderBoxSize[0]?.blockSize ?? 0;
    if (this.place) this.moveTo(this.place);
  });

  constructor(private readonly root: HTMLElement) {
    root.replaceChildren(
      this.time.root,
      this.list,
      this.more.root,
      this.band.root,
      this.notes.root,
    );
    this.observer.observe(root);
  }

  destroy(): void {
    this.observer.disconnect();
  }

  show(content: TipContent): void {
    write(this.time.text, content.time);
    content.rows.forEach((row, k) => this.writeRow(k, row));
    this.rows.forEach(({ root }, k) => setHidden(root, k >= content.rows.length));
    const { moreCount } = content;
    write(this.more.text, moreCount > 0 ? `${moreCount} more` : "");
    setHidden(this.more.root, moreCount === 0);
    write(this.band.text, content.band);
    setHidden(this.band.root, content.band === "");
    write(this.notes.text, content.annotations);
    setHidden(this.notes.root, content.annotations === "");
    setHidden(this.root, content.rows.length === 0 && content.annotations === "");
  }

  hide(): void {
    setHidden(this.root, true);
  }

  /** Moves next to a point of the plot, to the side with more space. */
  moveTo(place: TipPlace): void {
    this.place = place;
    const { x, y, width } = place;
    const isLeft = x + AWAY_PX + WIDTH_PX > width && x > width / 2;
    const left = isLeft ? x - AWAY_PX - WIDTH_PX : x + AWAY_PX;
    const clamped = Math.min(Math.max(left, 0), Math.max(width - WIDTH_PX, 0));
    const isAbove = isTipAbove(place, this.height);
    const top = isAbove ? `calc(${y - AWAY_PX}px - 100%)` : `${y + AWAY_PX}px`;
    this.root.style.transform = `translate(${clamped.toFixed(0)}px, ${top})`;
  }

  private writeRow(k: number, { colour, label, value, isNear }: TipRow): void {
    const row = (this.rows[k] ??= this.addRow());
    const [head, tail] = headAndTail(label);
    write(row.head, head);
    write(row.tail, tail);
    write(row.value, value);
    if (row.swatch.style.background !== colour) row.swatch.style.background = colour;
    row.root.classList.toggle("is-near", isNear);
  }

  private addRow(): RowElements {
    const root = element("div", "plot-tip-row");
    const swatch = element("i", "plot-tip-swatch");
    const name = element("span", "cut-name");
    const [head, tail, value] = [textIn("cut-head"), textIn("cut-tail"), textIn("num")];
    name.append(head.root, tail.root);
    root.append(swatch, name, value.root);
    this.list.append(root);
    return { root, swatch, head: head.text, tail: tail.text, value: value.text };
  }
}

function element(tag: string, name: string): HTMLElement {
  const created = document.createElement(tag);
  created.className = name;
  return created;
}

function textIn(name: string): { root: HTMLElement; text: Text } {
  const root = element("span", name);
  const text = document.createTextNode("");
  root.append(text);
  return { root, text };
}

/** Writes a text, with control characters escaped as in all texts of the page. */
function write(node: Text, text: string): void {
  const escaped = escapeReordering(text);
  if (node.data !== escaped) node.data = escaped;
}

function setHidden(node: HTMLElement, isHidden: boolean): void {
  if (node.hidden !== isHidden) node.hidden = isHidden;
}
