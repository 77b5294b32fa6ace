/** Pointer and keyboard on a plot: point, select a range, move, undo. */
import type { TimeFrame } from "./frame";
import type { Overlay } from "./overlay";
import type { Plot } from "./plot";
import { isOnThreshold, limitsOf, roundValueAt, type MovableThreshold } from "./threshold-drag";

export interface PointerPlace {
  /** Pixels from the left and the top of a plot's area. */
  x: number;
  y: number;
  /** Pixels of the viewport above the pointer, up to the controls, and below it. */
  above: number;
  below: number;
}

function placeOf({ clientX, clientY }: PointerEvent, root: HTMLElement): PointerPlace {
  const { left, top } = root.getBoundingClientRect();
  const controls = document.querySelector(".time-controls")?.getBoundingClientRect().bottom ?? 0;
  const limit = controls < clientY ? Math.max(controls, 0) : 0;
  const [above, below] = [clientY - limit, innerHeight - clientY];
  return { x: clientX - left, y: clientY - top, above, below };
}

export interface Gestures {
  plot: Plot;
  overlay: Overlay;
  frame: TimeFrame;
  /** The chart's key among the charts that share a cursor. */
  source: object;
  /** The pointer's place on the area, before the cursor moves to its time. */
  onPointer: (place: PointerPlace | undefined) => void;
  fullScreen: () => void;
  /** The threshold that the pointer can move. */
  threshold: () => MovableThreshold | undefined;
  /** Called with a stretch of time that was selected with Alt. */
  onStretch: (start: number, end: number) => void;
}

/** A shorter drag is a click. */
const DRAG_MIN_PX = 5;

/** Listens on the overlay until the returned function is called. */
export function listen(root: HTMLElement, gestures: Gestures): () => void {
  const drag = new Drag(gestures);
  const threshold = new ThresholdDrag(gestures);
  const { frame, plot, source, onPointer } = gestures;
  const abort = new AbortController();
  const listenFor = <K extends keyof HTMLElementEventMap>(
    name: K,
    call: (event: HTMLElementEventMap[K]) => void,
  ) => root.addEventListener(name, call, { signal: abort.signal });

  listenFor("pointermove", (event) => {
    const place = placeOf(event, root);
    const { x, y } = place;
    threshold.moveTo(y);
    if (drag.isUnderWay) drag.moveTo(x);
    onPointer(place);
    frame.cursor.move({ time: plot.timeAt(x), source, byKeys: false });
  });
  listenFor("pointerdown", (event) => {
    if (event.button !== 0) return;
    const place = placeOf(event, root);
    const { x, y } = place;
    if (event.pointerType === "touch") {
      onPointer(place);
      frame.cursor.move({ time: plot.timeAt(x), source, byKeys: false });
      return;
    }
    if (threshold.begin(y)) {
      root.setPointerCapture(event.pointerId);
      return;
    }
    root.setPointerCapture(event.pointerId);
    drag.begin(x, actionOf(event));
  });
  listenFor("pointerup", () => {
    threshold.end();
    drag.end();
  });
  listenFor("pointercancel", () => {
    threshold.cancel();
    drag.cancel();
  });
  listenFor("pointerleave", () => {
    if (drag.isUnderWay) return;
    onPointer(undefined);
    frame.cursor.leave(source);
  });
  listenFor("dblclick", () => frame.back());
  listenFor("blur", () => frame.cursor.leave(source));
  listenFor("keydown", (event) => {
    if (event.key === "Escape" && drag.isUnderWay) drag.cancel();
    else if (!handleKey(event, gestures)) return;
    event.preventDefault();
  });
  return () => abort.abort();
}

/** The action of a drag: Shift moves in time, Alt ranks what moved. */
type DragAction = "zoom" | "pan" | "moved";

function actionOf({ shiftKey, altKey }: MouseEvent): DragAction {
  return shiftKey ? "pan" : altKey ? "moved" : "zoom";
}

class Drag {
  private start: { x: number; action: DragAction } | undefined;
  private x = 0;

  constructor(private readonly gestures: Gestures) {}

  get isUnderWay(): boolean {
    return this.start !== undefined;
  }

  begin(x: number, action: DragAction): void {
    this.x = x;
    this.start = { x, action };
  }

  moveTo(x: number): void {
    const { plot, overlay } = this.gestures;
    this.x = Math.min(Math.max(x, 0), plot.area.width);
    if (!this.start) return;
    if (this.start.action !== "pan") overlay.select(this.start.x, this.x);
    else overlay.root.classList.add("is-panned");
  }

  end(): void {
    const { plot, frame, onStretch } = this.gestures;
    const start = this.start;
    this.cancel();
    if (!start || Math.abs(this.x - start.x) < DRAG_MIN_PX) return;
    const [from, to] = [plot.timeAt(start.x), plot.timeAt(this.x)];
    if (start.action === "pan") frame.pan((start.x - this.x) / plot.area.width);
    else if (start.action === "moved") onStretch(Math.min(from, to), Math.max(from, to));
    else frame.zoom(from, to);
  }

  cancel(): void {
    this.start = undefined;
    this.gestures.overlay.clearSelection();
    this.gestures.overlay.root.classList.remove("is-panned");
  }
}

/** The pointer on the line of a threshold, which moves with it. */
class ThresholdDrag {
  private limits: { low: number; high: number } | undefined;
  private value: number | undefined;
  /** The value at the start of a drag. */
  private initial: number | undefined;

  constructor(private readonly gestures: Gestures) {}

  /** Returns true if the pointer takes the threshold. */
  begin(y: number): boolean {
    const { plot, threshold } = this.gestures;
    const movable = threshold();
    if (!movable || !isOnThreshold(plot, movable.value, y)) return false;
    this.limits = limitsOf(plot);
    this.value = undefined;
    this.initial = movable.value;
    return true;
  }

  moveTo(y: number): void {
    const { plot, overlay, threshold } = this.gestures;
    const movable = threshold();
    const isOn = movable !== undefined && isOnThreshold(plot, movable.value, y);
    overlay.root.classList.toggle("on-threshold", this.limits !== undefined || isOn);
    if (!this.limits || !movable) return;
    this.value = roundValueAt(plot, y, this.limits);
    if (this.value !== movable.value) movable.onMove(this.value);
  }

  end(): void {
    const value = this.value;
    this.limits = this.value = undefined;
    if (value !== undefined) this.gestures.threshold()?.onEnd(value);
  }

  /** Moves the line back. */
  cancel(): void {
    if (this.value !== undefined && this.initial !== undefined)
      this.gestures.threshold()?.onEnd(this.initial);
    this.limits = this.value = undefined;
  }
}

/** Handles a key; returns whether the key has an action. */
function handleKey(event: KeyboardEvent, gestures: Gestures): boolean {
  const { plot, frame, source, fullScreen, onStretch } = gestures;
  const stretch = () => onStretch(frame.window.peek().start, frame.window.peek().end);
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  const step = (points: number) => {
    const { times } = plot.drawn;
    const last = times.length - 1;
    if (last < 0) return;
    const { at } = frame.cursor;
    const from = at === null ? (points > 0 ? -1 : last + 1) : (plot.indexOf(at.time) ?? last);
    const time = times[Math.min(Math.max(from + points, 0), last)];
    if (time !== undefined) frame.cursor.move({ time, source, byKeys: true });
  };
  const actions: Record<string, () => void> = {
    ArrowLeft: () => (event.shiftKey ? frame.pan(-0.25) : step(-1)),
    ArrowRight: () => (event.shiftKey ? frame.pan(0.25) : step(1)),
    PageUp: () => step(-10),
    PageDown: () => step(10),
    Home: () => step(-Infinity),
    End: () => step(Infinity),
    "+": () => frame.magnify(2),
    "=": () => frame.magnify(2),
    "-": () => frame.magnify(0.5),
    "0": () => frame.back(),
    Backspace: () => frame.back(),
    f: fullScreen,
    F: fullScreen,
    m: stretch,
    M: stretch,
    Escape: () => frame.cursor.leave(source),
  };
  const action = actions[event.key];
  action?.();
  return action !== undefined && event.key !== "Escape";
}
