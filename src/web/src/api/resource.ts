/**
 * What a view shows of the daemon: the last good answer, kept while a newer one loads or fails, so
 * that a refresh never empties what somebody looks at.
 */
import { signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { ApiError, whenBack } from "./client";

export interface Resource<T> {
  /** The last good answer. */
  data: T | undefined;
  /** Why the newest request failed; `undefined` when it did not. */
  error: ApiError | undefined;
  loading: boolean;
  reload: () => void;
}

export interface Following {
  /** How often it is asked again while the page is seen; never when `undefined`. */
  everyMs?: number | undefined;
  /** Whether what was said of another key stays until there is an answer to this one. */
  isKeptBetween?: boolean;
}

type State<T> = Signal<Resource<T>>;

/** Asks once for each `key`, and follows it. What was said of another key is no answer to this one. */
export function useResource<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  { everyMs, isKeptBetween = false }: Following = {},
): ReadonlySignal<Resource<T>> {
  const state: State<T> = useMemo(
    () => signal({ data: undefined, error: undefined, loading: true, reload: () => {} }),
    [isKeptBetween || key],
  );
  const pause = useRef(everyMs);
  pause.current = everyMs;
  // While it is rendered: the answer is on its way before anything is drawn.
  const stop = useMemo(() => follow(state, load, () => pause.current), [key]);
  useLayoutEffect(() => stop, [stop]);
  return state;
}

/** Asks, and goes on asking, until what is returned is called. */
function follow<T>(
  state: State<T>,
  load: (signal: AbortSignal) => Promise<T>,
  pause: () => number | undefined,
): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let abort = new AbortController();
  const run = async () => {
    clearTimeout(timer);
    abort.abort();
    abort = new AbortController();
    const own = abort;
    state.value = { ...state.peek(), loading: true, reload };
    try {
      const data = await load(own.signal);
      if (!own.signal.aborted) state.value = { data, error: undefined, loading: false, reload };
    } catch (cause) {
      if (own.signal.aborted) return;
      const error = cause instanceof ApiError ? cause : new ApiError(0, "failed", String(cause));
      state.value = { ...state.peek(), error, loading: false, reload };
    }
    const everyMs = pause();
    if (everyMs !== undefined && !own.signal.aborted) timer = setTimeout(tick, everyMs);
  };
  const tick = () => {
    // A page that nobody sees asks for nothing.
    if (document.hidden) timer = setTimeout(tick, 1000);
    else reload();
  };
  const reload = () => void run();
  // What was asked of a daemon that hung is not answered any more.
  const back = whenBack(() => {
    if (state.peek().loading || state.peek().error?.status === 0) reload();
  });
  reload();
  return () => {
    clearTimeout(timer);
    abort.abort();
    back();
  };
}
