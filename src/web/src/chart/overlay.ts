/**
 * The layer above a plot that follows the pointer: the line at the pointed time, a dot on each
 * series of the pointed chart, the selected time range. Elements move by transforms only, and
 * nothing is rendered.
 */
import type { PointedTime } from "./cursor";
import type { Plot } from "./plot";
import { readColours } from "./plot-colours";

/** More dots would hide the lines. */
const DOTS_MAX = 30;
/** Pixels from the centre of a dot to its edge, and of the ring around it. */
const DOT = { radius: 3.5, ring: 1.5 };
const DOTS_WIDTH_PX = 12;

export interface DotLook {
  colour: string;
  shown: boolean;
}

export class Overlay {
  private readonly line = createPart("plot-line");
  private readonly selection = createPart("plot-chosen");
  /** The dots move with the line, on one canvas instead of a layer for each. */
  private readonly dots = document.createElement("canvas");
  private looks: readonly DotLook[] = [];
  /** The series with a dot while others would be too many. */
  private listed: ReadonlySet<number> | undefined;
  private background = "";
  private index = -1;

  constructor(
    readonly root: HTMLElement,
    private readonly plot: Plot,
  ) {
    this.dots.className = "plot-dots";
    this.line.append(this.dots);
    root.append(this.selection, this.line);
    this.line.hidden = this.selection.hidden = this.dots.hidden = true;
  }

  /** Covers exactly the area between the axes. */
  fit(): void {
    const { left, top, width, height } = this.plot.area;
    Object.assign(this.root.style, {
      left: `${left}px`,
      top: `${top}px`,
      width: `${width}px`,
      height: `${height}px`,
    });
    const ratio = devicePixelRatio;
    this.dots.width = DOTS_WIDTH_PX * ratio;
    this.dots.height = (height + DOTS_WIDTH_PX) * ratio;
    this.dots.style.height = `${height + DOTS_WIDTH_PX}px`;
    this.redraw();
  }

  setLooks(looks: readonly DotLook[]): void {
    this.looks = looks;
    this.background = readColours().background;
  }

  /** Restricts the dots to these series; `undefined` for all, unless there are too many. */
  setListed(listed: readonly number[] | undefined): void {
    this.listed = listed && new Set(listed);
    this.redraw();
  }

  /** Shows the pointed time at this index, with dots only in the chart under the pointer. */
  point(
    pointed: PointedTime | null,
    index: number | undefined,
    time: number,
    isSource: boolean,
  ): void {
    const isShown = pointed !== null && index !== undefined;
    if (this.line.hidden === isShown) this.line.hidden = !isShown;
    if (!isShown) {
      this.index = -1;
      return;
    }
    this.line.style.transform = `translateX(${this.plot.xOf(time).toFixed(1)}px)`;
    const dotIndex = isSource ? index : -1;
    if (dotIndex !== this.index) {
      this.index = dotIndex;
      this.moveDots(dotIndex);
    }
  }

  /** The same index may have new numbers: the dots are placed again. */
  redraw(): void {
    if (this.index >= 0) this.moveDots(this.index);
  }

  private moveDots(index: number): void {
    if (this.dots.hidden !== index < 0) this.dots.hidden = index < 0;
    const ctx = index < 0 ? null : this.dots.getContext("2d");
    if (!ctx) return;
    const ratio = devicePixelRatio;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, DOTS_WIDTH_PX, this.dots.height);
    ctx.lineWidth = DOT.ring;
    ctx.strokeStyle = this.background;
    this.looks.forEach(({ colour, shown }, k) => {
      const isListed = this.listed?.has(k) ?? this.looks.length <= DOTS_MAX;
      const y = shown && isListed ? this.plot.yOf(k, index) : undefined;
      if (y === undefined) return;
      ctx.beginPath();
      ctx.arc(DOTS_WIDTH_PX / 2, y + DOTS_WIDTH_PX / 2, DOT.radius, 0, 2 * Math.PI);
      ctx.fillStyle = colour;
      ctx.fill();
      ctx.stroke();
    });
  }

  /** Marks the range between two positions of the area, in pixels. */
  select(from: number, to: number): void {
    const [left, right] = from < to ? [from, to] : [to, from];
    this.selection.hidden = right - left < 1;
    this.selection.style.transform = `translateX(${left}px)`;
    this.selection.style.width = `${right - left}px`;
  }

  clearSelection(): void {
    this.selection.hidden = true;
  }
}

function createPart(name: string): HTMLElement {
  const element = document.createElement("div");
  element.className = name;
  return element;
}
