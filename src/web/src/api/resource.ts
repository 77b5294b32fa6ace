/**
 * A view's data: the last good answer, kept while a newer one loads or fails, so that a refresh
 * never empties the view.
 */
import { signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { ApiError, onDaemonBack } from "./client";

export interface Resource<T> {
  /** The last good answer. */
  data: T | undefined;
  /** The error of the newest request; `undefined` without an error. */
  error: ApiError | undefined;
  loading: boolean;
  reload: () => void;
}

export interface ResourceOptions {
  /** The interval of refreshing while the page is visible; never when `undefined`. */
  everyMs?: number | (() => number) | undefined;
  /** True if the data of the previous key stays until the answer for a new key arrives. */
  isKeptBetween?: boolean;
}

type State<T> = Signal<Resource<T>>;

/** Requests once for each `key`, and follows it. Data of another key is not shown for this one. */
export function useResource<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  { everyMs, isKeptBetween = false }: ResourceOptions = {},
): ReadonlySignal<Resource<T>> {
  const state: State<T> = useMemo(
    () => signal({ data: undefined, error: undefined, loading: true, reload: () => {} }),
    [isKeptBetween || key],
  );
  const refreshInterval = useRef(everyMs);
  refreshInterval.current = everyMs;
  // The request starts during rendering, before anything is drawn.
  const stop = useMemo(
    () => requestRepeatedly(state, load, () => msOf(refreshInterval.current)),
    [key],
  );
  useLayoutEffect(() => stop, [stop]);
  return state;
}

function msOf(interval: ResourceOptions["everyMs"]): number | undefined {
  return typeof interval === "function" ? interval() : interval;
}

/** Requests repeatedly until the returned function is called. */
function requestRepeatedly<T>(
  state: State<T>,
  load: (signal: AbortSignal) => Promise<T>,
  refreshInterval: () => number | undefined,
): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let abort = new AbortController();
  const requestOnce = async () => {
    clearTimeout(timer);
    abort.abort();
    abort = new AbortController();
    const request = abort;
    state.value = { ...state.peek(), loading: true, reload };
    try {
      const data = await load(request.signal);
      if (!request.signal.aborted) state.value = { data, error: undefined, loading: false, reload };
    } catch (cause) {
      if (request.signal.aborted) return;
      const error = cause instanceof ApiError ? cause : new ApiError(0, "failed", String(cause));
      state.value = { ...state.peek(), error, loading: false, reload };
    }
    const everyMs = refreshInterval();
    if (everyMs !== undefined && !request.signal.aborted) timer = setTimeout(tick, everyMs);
  };
  const tick = () => {
    // A hidden page sends no requests.
    if (document.hidden) timer = setTimeout(tick, 1000);
    else reload();
  };
  const reload = () => void requestOnce();
  // Requests that were sent to a hanging daemon never get an answer.
  const stopWaiting = onDaemonBack(() => {
    if (state.peek().loading || state.peek().error?.status === 0) reload();
  });
  reload();
  return () => {
    clearTimeout(timer);
    abort.abort();
    stopWaiting();
  };
}
