/** Keeps a chart's data fresh while the chart is near the viewport. */
import { batch, effect, signal, type ReadonlySignal } from "@preact/signals";
import { ApiError } from "../api/client";
import { steady } from "../app/steady";
import { isSame } from "../model/same";
import type { Window } from "../model/timeframe";
import { withDrawnPart, type ChartData, type Failure } from "./data";
import type { TimeFrame } from "./frame";
import { earlierWindow, withDifference, withGhosts, type Comparison } from "./compare";
import { load } from "./load";
import { dataSpecOf, type ChartRequest, type ChartSpec } from "./chart-spec";

/** A refresh moves a window by less than this fraction of its length. */
const REFRESH_SHIFT_MAX = 0.1;

export class Loader {
  readonly data = signal<ChartData | undefined>(undefined);
  readonly error = signal<ApiError | undefined>(undefined);
  /** Queries that failed. */
  readonly failures = signal<Failure[]>([]);
  readonly isLoading = signal(true);
  /** True if the chart is near the viewport. */
  readonly isNear = signal(false);
  /** The last request, under way or answered; "" without a request. */
  private requestKey = "";
  /** The request of the loaded data, without its window. */
  private loadedSpec = "";

  constructor(
    private readonly frame: TimeFrame,
    private readonly spec: ReadonlySignal<ChartSpec>,
    private readonly comparison: ReadonlySignal<Comparison | undefined>,
    /** True for the difference from the other time in place of both lines. */
    private readonly isDifference: ReadonlySignal<boolean> = signal(false),
  ) {}

  /** Loads until the returned function is called. */
  run(): () => void {
    let abort = new AbortController();
    const dataSpec = steady(() => dataSpecOf(this.spec.value));
    const stop = effect(() => {
      const { refreshCount, ...window } = this.frame.request.value;
      const { display: frameDisplay } = this.frame.choice.value;
      const spec = dataSpec.value;
      const comparison = this.comparison.value;
      const isDifference = this.isDifference.value;
      if (!this.isNear.value) return;
      const key = JSON.stringify([
        ...[spec, window, frameDisplay, refreshCount],
        ...[comparison, isDifference],
      ]);
      // The chart left the viewport and returned: its data is loaded or requested.
      if (key === this.requestKey) return;
      this.requestKey = key;
      abort.abort();
      abort = new AbortController();
      const onFailures = (failures: Failure[]) => (this.failures.value = failures);
      const request = { ...spec, window, frameDisplay, onFailures };
      void this.requestData(
        request,
        JSON.stringify([spec, frameDisplay, comparison, isDifference]),
        abort.signal,
      );
    });
    return () => {
      stop();
      abort.abort();
      this.requestKey = "";
    };
  }

  /** Returns true if the data of this window is still missing. */
  isAwaited(window: Window): boolean {
    const data = this.data.value;
    return data !== undefined && !this.error.value && !isSame(data.window, window);
  }

  private async requestData(
    request: ChartRequest,
    dataSpec: string,
    signal: AbortSignal,
  ): Promise<void> {
    this.isLoading.value = true;
    const { requestKey: key } = this;
    const drawnWindow = this.data.peek()?.window;
    // A refresh keeps the drawn data; another request or a distant window shows a preview first.
    const needsPreview =
      dataSpec !== this.loadedSpec || !drawnWindow || isDistant(drawnWindow, request.window);
    const comparison = this.comparison.peek();
    const isDifference = this.isDifference.peek();
    const setData = (data: ChartData, earlier?: ChartData) => {
      if (signal.aborted) return;
      const { derive } = this.spec.peek();
      const derived = (loaded: ChartData) => (derive ? derive.series(loaded) : loaded);
      this.loadedSpec = dataSpec;
      const drawn = withDrawnPart(derived(data));
      const both = withGhosts(drawn, earlier && derived(earlier), comparison);
      this.data.value = isDifference ? withDifference(both, comparison) : both;
    };
    try {
      const window = comparison && earlierWindow(request.window, comparison);
      const earlierRequest = window && { ...request, window, band: false, onFailures: undefined };
      const [data, earlier] = await Promise.all([
        load(request, signal, needsPreview ? (preview) => setData(preview) : undefined),
        earlierRequest && load(earlierRequest, signal),
      ]);
      batch(() => {
        setData(data, earlier);
        this.error.value = undefined;
        this.isLoading.value = false;
      });
    } catch (cause) {
      if (signal.aborted) return;
      if (this.requestKey === key) this.requestKey = "";
      batch(() => {
        this.error.value =
          cause instanceof ApiError ? cause : new ApiError(0, "failed", String(cause));
        this.isLoading.value = false;
      });
    }
  }
}

/** Returns true if the requested window differs much from the drawn window. */
function isDistant(drawnWindow: Window, request: Window): boolean {
  const length = request.end - request.start;
  const shift =
    Math.abs(drawnWindow.start - request.start) + Math.abs(drawnWindow.end - request.end);
  return drawnWindow.resolution !== request.resolution || shift > 2 * REFRESH_SHIFT_MAX * length;
}
