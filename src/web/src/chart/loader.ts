/** Keeps a chart's data fresh while the chart is near the viewport. */
import { batch, effect, signal, type ReadonlySignal } from "@preact/signals";
import { ApiError } from "../api/client";
import { steady } from "../app/steady";
import { isSame } from "../model/same";
import type { Window } from "../model/timeframe";
import type { ChartData, Failure } from "./data";
import type { TimeFrame } from "./frame";
import { load } from "./load";
import { dataSpecOf, type ChartRequest, type ChartSpec } from "./chart-spec";

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
  /** The last request, under way or loadedSpec; "" without a request. */
  private key = "";
  /** The request of the loaded data, without its window. */
  private loadedSpec = "";

  constructor(
    private readonly frame: TimeFrame,
    private readonly spec: ReadonlySignal<ChartSpec>,
  ) {}

  /** Loads until the returned function is called. */
  run(): () => void {
    let abort = new AbortController();
    const dataSpec = steady(() => dataSpecOf(this.spec.value));
    const stop = effect(() => {
      const { turn, ...window } = this.frame.request.value;
      const { display: frameDisplay } = this.frame.choice.value;
      const spec = dataSpec.value;
      if (!this.isNear.value) return;
      const key = JSON.stringify([spec, window, frameDisplay, turn]);
      // The chart left the viewport and returned: its data is loaded or requested.
      if (key === this.key) return;
      this.key = key;
      abort.abort();
      abort = new AbortController();
      const onFailures = (failures: Failure[]) => (this.failures.value = failures);
      const request = { ...spec, window, frameDisplay, onFailures };
      void this.ask(request, JSON.stringify([spec, frameDisplay]), abort.signal);
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

  private async ask(request: ChartRequest, dataSpec: string, abort: AbortSignal): Promise<void> {
    this.isLoading.value = true;
    const { key } = this;
    const shown = this.data.peek()?.window;
    // A refresh keeps the drawn data; another request or a distant window shows a preview first.
    const isNew = dataSpec !== this.loadedSpec || !shown || differsMuch(shown, request.window);
    const setData = (data: ChartData) => {
      if (abort.aborted) return;
      const { derive } = this.spec.peek();
      this.loadedSpec = dataSpec;
      this.data.value = derive ? derive.series(data) : data;
    };
    try {
      const data = await load(request, abort, isNew ? setData : undefined);
      batch(() => {
        setData(data);
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

/** Whether the requested window differs much from the drawn window. */
function differsMuch(shown: Window, request: Window): boolean {
  const length = request.end - request.start;
  const moved = Math.abs(shown.start - request.start) + Math.abs(shown.end - request.end);
  return shown.resolution !== request.resolution || moved > 2 * MOVED_MAX * length;
}
