/**
 * The time frame shared by all charts of a view: read from the address and written to it, following
 * the daemon's clock, with an undo for zooms.
 */
import { computed, effect, signal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { api, now, onDaemonBack } from "../api/client";
import type { Annotation } from "../api/types";
import { address, setParams } from "../app/address";
import { preferredZone } from "../app/preferences";
import { steady } from "../app/steady";
import { refreshChoiceOf, refreshInterval, type RefreshChoice } from "../model/refresh";
import { isSame } from "../model/same";
import {
  complaintAbout,
  withPan,
  readChoice,
  slotOf,
  withTimes,
  withWiderWindow,
  windowOf,
  writeChoice,
  withZoom,
  type Choice,
  type Window,
} from "../model/timeframe";
import { Cursor } from "./cursor";

/** The window does not move for this time after the last move of the pointer. */
const READING_PAUSE_MS = 30_000;

export interface FrameOptions {
  /** Resolution and range for an address without them. */
  resolution?: string | undefined;
  range?: string | undefined;
  /** A filter for annotations, in the API's form; all by default. */
  annotationTags?: string | undefined;
  /** A constant time frame, which the address neither contains nor changes. */
  choice?: Choice | undefined;
}

export class TimeFrame {
  readonly choice: ReadonlySignal<Choice>;
  readonly window: ReadonlySignal<Window>;
  /** The chosen interval of refreshing; `undefined` for the interval that fits the slots. */
  readonly refreshChoice: ReadonlySignal<RefreshChoice | undefined>;
  /** The reason why the time frame differs from the address. */
  readonly complaint: ReadonlySignal<string | undefined>;
  /** The requested window: a new object even for a repeated request. */
  readonly request: ReadonlySignal<Window & { refreshCount: number }>;
  readonly annotations = signal<Annotation[]>([]);
  readonly cursor = new Cursor();
  /** Earlier choices that undoing a zoom restores. */
  readonly zoomHistory = signal<Choice[]>([]);
  private readonly windowTime = signal(now());
  private readonly refreshCount = signal(0);
  private readonly defaults: ReadonlySignal<{ resolution?: string; range?: string; zone: string }>;

  constructor(readonly options: FrameOptions) {
    this.defaults = computed(() => ({
      ...(options.resolution ? { resolution: options.resolution } : {}),
      ...(options.range ? { range: options.range } : {}),
      zone: preferredZone.value,
    }));
    // Steady: other changes of the address change nothing here.
    this.choice = steady(
      () => options.choice ?? readChoice(address.value.params, this.defaults.value),
    );
    this.complaint = computed(() => complaintAbout(address.value.params, this.choice.value));
    this.refreshChoice = computed(() => refreshChoiceOf(address.value.params.get("refresh")));
    this.window = steady(() => windowOf(this.choice.value, this.windowTime.value));
    this.request = computed(() => ({
      ...this.window.value,
      refreshCount: this.refreshCount.value,
    }));
  }

  set(choice: Choice, options: { replace?: boolean } = {}): void {
    if (this.options.choice) return;
    this.windowTime.value = now();
    // The zone is always written: another reader has other defaults.
    setParams(writeChoice(choice, { ...this.defaults.peek(), zone: "" }), options);
  }

  /** Chooses the interval of refreshing; a chosen interval also refreshes at once. */
  setRefresh(choice: RefreshChoice | undefined): void {
    setParams({ refresh: choice }, { replace: true });
    if (choice !== "off") this.refresh();
  }

  /** Refreshes at the reader's request, even while the reader is reading a value. */
  refreshNow(): void {
    this.windowTime.value = now();
    this.refreshCount.value++;
  }

  /** Shows a time range in slots that are neither too many nor too few; `back` undoes it. */
  show(start: number, end: number): void {
    const previous = this.choice.peek();
    this.zoomHistory.value = [...this.zoomHistory.peek(), previous].slice(-50);
    this.set(withTimes(previous, start, end));
  }

  /** Shows a time range; `back` undoes it. */
  zoom(start: number, end: number): void {
    const previous = this.choice.peek();
    this.zoomHistory.value = [...this.zoomHistory.peek(), previous].slice(-50);
    this.set(withZoom(previous, start, end));
  }

  /** Zooms in on the middle; values below 1 zoom out. */
  magnify(times: number): void {
    const { start, end } = this.window.peek();
    if (times > 1) {
      const [middle, half] = [(start + end) / 2, (end - start) / 2 / times];
      this.zoom(middle - half, middle + half);
    } else {
      this.set(withWiderWindow(this.choice.peek(), this.window.peek(), 1 / times, now()));
    }
  }

  /** Undoes the last zoom, or returns to the present. */
  back(): void {
    const zoomHistory = [...this.zoomHistory.peek()];
    const previous = zoomHistory.pop();
    this.zoomHistory.value = zoomHistory;
    if (previous) this.set(previous);
    else this.follow();
  }

  /** Follows the clock again. */
  follow(): void {
    const { fixed, ...choice } = this.choice.peek();
    if (fixed) this.set({ ...choice, fixed: undefined });
  }

  /** Moves by a fraction of the window, to later times when positive. */
  pan(fraction: number): void {
    this.set(withPan(this.choice.peek(), this.window.peek(), fraction, now()), { replace: true });
  }

  /** Refreshes charts; the window follows the clock unless the reader is reading a value. */
  refresh(): void {
    if (!this.cursor.isReading(READING_PAUSE_MS)) this.windowTime.value = now();
    this.refreshCount.value++;
  }

  /** Keeps the frame alive while its view is shown. */
  run(): () => void {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const scheduleRefresh = () => {
      clearTimeout(timer);
      const slot = slotOf(this.choice.peek().resolution);
      const interval = refreshInterval(this.refreshChoice.peek(), slot);
      timer = interval === undefined ? undefined : setTimeout(tick, interval);
    };
    const tick = () => {
      if (!document.hidden) this.refresh();
      scheduleRefresh();
    };
    const onVisibilityChange = () => {
      if (document.hidden || this.refreshChoice.peek() === "off") return;
      tick();
    };
    const stopSchedule = this.refreshChoice.subscribe(scheduleRefresh);
    document.addEventListener("visibilitychange", onVisibilityChange);
    const stopWaiting = onDaemonBack(() => this.refresh());
    const stopAnnotations = this.followAnnotations();
    return () => {
      stopSchedule();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisibilityChange);
      stopWaiting();
      stopAnnotations();
    };
  }

  /** One request for all charts of the view. */
  private followAnnotations(): () => void {
    let abort = new AbortController();
    const stop = effect(() => {
      const { start, end } = this.request.value;
      abort.abort();
      abort = new AbortController();
      const tags = this.options.annotationTags;
      api.annotations({ start, end, ...(tags ? { tags } : {}) }, abort.signal).then(
        ({ annotations }) => {
          if (!isSame(annotations, this.annotations.peek())) this.annotations.value = annotations;
        },
        () => {
          // Charts are drawn without annotations; their own requests show the error.
        },
      );
    });
    return () => {
      stop();
      abort.abort();
    };
  }
}

/** The time frame of a view, made once for each `key`. */
export function useTimeFrame(options: FrameOptions = {}, key = ""): TimeFrame {
  const frame = useMemo(() => new TimeFrame(options), [key]);
  useEffect(() => frame.run(), [frame]);
  return frame;
}
