/**
 * What lies over a plot and moves with the pointer: the line at the pointed time, a dot on each
 * series of the chart that is pointed at, the stretch that is being chosen. Elements are moved by
 * transforms only; nothing of it is rendered.
 */
import type { Pointed } from "./cursor";
import type { Plot } from "./plot";

/** More dots would hide the lines. */
const DOTS_MAX = 30;

export interface DotLook {
  colour: string;
  shown: boolean;
}

export class Overlay {
  private readonly line = part("plot-line");
  private readonly chosen = part("plot-chosen");
  private readonly dots: HTMLElement[] = [];
  private looks: readonly DotLook[] = [];
  private place = -1;

  constructor(
    readonly root: HTMLElement,
    private readonly plot: Plot,
  ) {
    root.append(this.chosen, this.line);
    this.line.hidden = this.chosen.hidden = true;
  }

  /** Lies exactly over the area between the axes. */
  fit(): void {
    const { left, top, width, height } = this.plot.area;
    Object.assign(this.root.style, {
      left: `${left}px`,
      top: `${top}px`,
      width: `${width}px`,
      height: `${height}px`,
    });
  }

  look(looks: readonly DotLook[]): void {
    this.looks = looks;
    const count = Math.min(looks.length, DOTS_MAX);
    while (this.dots.length > count) this.dots.pop()?.remove();
    while (this.dots.length < count) {
      const dot = part("plot-dot");
      dot.hidden = true;
      this.dots.push(dot);
      this.line.append(dot);
    }
    this.dots.forEach((dot, k) => dot.style.setProperty("background", looks[k]?.colour ?? ""));
    this.again();
  }

  /** Shows the pointed time at the point of this place; dots where the pointer itself is. */
  point(pointed: Pointed | null, place: number | undefined, time: number, isSource: boolean): void {
    const isShown = pointed !== null && place !== undefined;
    if (this.line.hidden === isShown) this.line.hidden = !isShown;
    if (!isShown) {
      this.place = -1;
      return;
    }
    this.line.style.transform = `translateX(${this.plot.xOf(time).toFixed(1)}px)`;
    const from = isSource ? place : -1;
    if (from !== this.place) {
      this.place = from;
      this.moveDots(from);
    }
  }

  /** Dots are placed anew although the place is the same: numbers have changed. */
  again(): void {
    if (this.place >= 0) this.moveDots(this.place);
  }

  private moveDots(place: number): void {
    this.dots.forEach((dot, k) => {
      const y = place < 0 || !this.looks[k]?.shown ? undefined : this.plot.yOf(k, place);
      dot.hidden = y === undefined;
      if (y !== undefined) dot.style.transform = `translateY(${y.toFixed(1)}px)`;
    });
  }

  /** Marks the stretch between two places of the area, in pixels. */
  choose(from: number, to: number): void {
    const [left, right] = from < to ? [from, to] : [to, from];
    this.chosen.hidden = right - left < 1;
    this.chosen.style.transform = `translateX(${left}px)`;
    this.chosen.style.width = `${right - left}px`;
  }

  choseNothing(): void {
    this.chosen.hidden = true;
  }
}

function part(name: string): HTMLElement {
  const element = document.createElement("div");
  element.className = name;
  return element;
}
