/** Keeps a chart's numbers up to date: asks while the chart is near what is seen. */
import { batch, effect, signal, type ReadonlySignal } from "@preact/signals";
import { ApiError } from "../api/client";
import { steady } from "../app/steady";
import { isSame } from "../model/same";
import type { Window } from "../model/timeframe";
import type { ChartData, Failure } from "./data";
import type { TimeFrame } from "./frame";
import { load } from "./load";
import { questionOf, type Asked, type ChartWish } from "./wish";

/** A refresh moves a window by less than this part of its length. */
const MOVED_MAX = 0.1;

export class Loader {
  readonly data = signal<ChartData | undefined>(undefined);
  readonly error = signal<ApiError | undefined>(undefined);
  /** Queries that were not answered. */
  readonly failures = signal<Failure[]>([]);
  readonly isLoading = signal(true);
  /** Whether the chart is near what is seen. */
  readonly isNear = signal(false);
  /** What is asked for or was answered last; "" where there is nothing of it. */
  private key = "";
  /** The question to which there is data. */
  private answered = "";

  constructor(
    private readonly frame: TimeFrame,
    private readonly wish: ReadonlySignal<ChartWish>,
  ) {}

  /** Asks until what is returned is called. */
  run(): () => void {
    let abort = new AbortController();
    const question = steady(() => questionOf(this.wish.value));
    const stop = effect(() => {
      const { turn, ...window } = this.frame.asked.value;
      const { display: frameDisplay } = this.frame.choice.value;
      const wanted = question.value;
      if (!this.isNear.value) return;
      const key = JSON.stringify([wanted, window, frameDisplay, turn]);
      // Away and back again: it is there, or on its way.
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

  /** Whether the data of this window is yet to come. */
  isAwaited(window: Window): boolean {
    const data = this.data.value;
    return data !== undefined && !this.error.value && !isSame(data.window, window);
  }

  private async ask(asked: Asked, question: string, abort: AbortSignal): Promise<void> {
    this.isLoading.value = true;
    const { key } = this;
    const shown = this.data.peek()?.window;
    // A refresh has what it shows; another question or window has not.
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

/** Whether a window shows much that another does not. */
function isElsewhere(shown: Window, asked: Window): boolean {
  const length = asked.end - asked.start;
  const moved = Math.abs(shown.start - asked.start) + Math.abs(shown.end - asked.end);
  return shown.resolution !== asked.resolution || moved > 2 * MOVED_MAX * length;
}
