/** Keeps a chart's data fresh while the chart is near the viewport. */
import { batch, effect, signal, type ReadonlySignal } from "@preact/signals";
import { ApiError } from "../api/client";
import { steady } from "../app/steady";
import { isSame } from "../model/same";
import type { Window } from "../model/timeframe";
import type { ChartData, Failure } from "./data";
import type { TimeFrame } from "./frame";
import { load } from "./load";
import { questionOf, type Asked, type ChartWish } from "./wish";

/** A refresh moves a window by less than this fraction of its length. */
const MOVED_MAX = 0.1;

export class Loader {
  readonly data = signal<ChartData | undefined>(undefined);
  readonly error = signal<ApiError | undefined>(undefined);
  /** Queries that failed. */
  readonly failures = signal<Failure[]>([]);
  readonly isLoading = signal(true);
  /** Whether the chart is near the viewport. */
  readonly isNear = signal(false);
  /** The last request, under way or answered; "" without a request. */
  private key = "";
  /** The question that the data answers. */
  private answered = "";

  constructor(
    private readonly frame: TimeFrame,
    private readonly wish: ReadonlySignal<ChartWish>,
  ) {}

  /** Loads until the returned function is called. */
  run(): () => void {
    let abort = new AbortController();
    const question = steady(() => questionOf(this.wish.value));
    const stop = effect(() => {
      const { turn, ...window } = this.frame.asked.value;
      const { display: frameDisplay } = this.frame.choice.value;
      const wanted = question.value;
      if (!this.isNear.value) return;
      const key = JSON.stringify([wanted, window, frameDisplay, turn]);
      // The chart left the viewport and returned: its data is loaded or requested.
      if (key === this.key) return;
      this.key = key;
      abort.abort();
      abort = new AbortController();
      const onFailures = (failures: Failure[]) => (this.failures.value = failures);
      const asked = { ...wanted, window, frameDisplay, onFailures };
      void this.ask(asked, JSON.stringify([wanted, frameDisplay]), abort.signal);
    });
    return () => {
      stop();
      abort.abort();
      this.key = "";
    };
  }

  /** Whether the data of this window is still missing. */
  isAwaited(window: Window): boolean {
    const data = this.data.value;
    return data !== undefined && !this.error.value && !isSame(data.window, window);
  }

  private async ask(asked: Asked, question: string, abort: AbortSignal): Promise<void> {
    this.isLoading.value = true;
    const { key } = this;
    const shown = this.data.peek()?.window;
    // A refresh keeps the shown data; another question or window has none.
    const isNew = question !== this.answered || !shown || isElsewhere(shown, asked.window);
    const take = (data: ChartData) => {
      if (abort.aborted) return;
      const { derive } = this.wish.peek();
      this.answered = question;
      this.data.value = derive ? derive.series(data) : data;
    };
    try {
      const data = await load(asked, abort, isNew ? take : undefined);
      batch(() => {
        take(data);
        this.error.value = undefined;
        this.isLoading.value = false;
      });
    } catch (cause) {
      if (abort.aborted) return;
      if (this.key === key) this.key = "";
      batch(() => {
        this.error.value =
          cause instanceof ApiError ? cause : new ApiError(0, "failed", String(cause));
        this.isLoading.value = false;
      });
    }
  }
}

/** Whether a window differs much from the shown one. */
function isElsewhere(shown: Window, asked: Window): boolean {
  const length = asked.end - asked.start;
  const moved = Math.abs(shown.start - asked.start) + Math.abs(shown.end - asked.end);
  return shown.resolution !== asked.resolution || moved > 2 * MOVED_MAX * length;
}
