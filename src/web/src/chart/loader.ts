/** Keeps a chart's numbers up to date: asks while the chart is near what is seen. */
import { batch, computed, effect, signal, type ReadonlySignal } from "@preact/signals";
import { ApiError } from "../api/client";
import type { ChartData, Failure } from "./data";
import type { TimeFrame } from "./frame";
import type { ChartWish } from "./live";
import { load, type Asked } from "./load";

export class Loader {
  readonly data = signal<ChartData | undefined>(undefined);
  readonly error = signal<ApiError | undefined>(undefined);
  /** Queries that were not answered. */
  readonly failures = signal<Failure[]>([]);
  readonly isLoading = signal(true);
  /** Whether the chart is near what is seen. */
  readonly isNear = signal(false);
  /** Of the frame, when it asked last. */
  private turn = -1;

  constructor(
    private readonly frame: TimeFrame,
    private readonly wish: ReadonlySignal<ChartWish>,
  ) {}

  /** Asks until what is returned is called. */
  run(): () => void {
    let abort = new AbortController();
    const question = computed(() => {
      const { queries, display, unit, band, labels } = this.wish.value;
      return JSON.stringify({ queries, display, unit, band, labels });
    });
    const stop = effect(() => {
      const { turn, ...window } = this.frame.asked.value;
      const { display: frameDisplay } = this.frame.choice.value;
      const asked = JSON.parse(question.value) as Pick<ChartWish, "queries" | "band"> &
        Partial<Pick<ChartWish, "display" | "unit" | "labels">>;
      if (!this.isNear.value) return;
      abort.abort();
      abort = new AbortController();
      const { queries, band, display, unit, labels } = asked;
      const onFailures = (failures: Failure[]) => (this.failures.value = failures);
      const all = { queries, band, display, unit, labels, window, frameDisplay, onFailures };
      void this.ask(all, turn, abort.signal);
    });
    return () => {
      stop();
      abort.abort();
    };
  }

  private async ask(asked: Asked, turn: number, abort: AbortSignal): Promise<void> {
    this.isLoading.value = true;
    // A refresh has what it shows; another window has not.
    const isNew = turn === this.turn || this.data.peek() === undefined;
    this.turn = turn;
    const take = (data: ChartData) => {
      if (abort.aborted) return;
      const { derive } = this.wish.peek();
      this.data.value = derive ? derive(data) : data;
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
      this.error.value =
        cause instanceof ApiError ? cause : new ApiError(0, "failed", String(cause));
      this.isLoading.value = false;
    }
  }
}
