/**
 * What a view shows of the daemon: the last good answer, kept while a newer one loads or fails, so
 * that a refresh never empties what somebody looks at.
 */
import { signal, type ReadonlySignal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { ApiError, awaySince } from "./client";

export interface Resource<T> {
  /** The last good answer. */
  data: T | undefined;
  /** Why the newest request failed; `undefined` when it did not. */
  error: ApiError | undefined;
  loading: boolean;
  reload: () => void;
}

/** Asks once for each `key`, and again every `everyMs` while the page is seen. */
export function useResource<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  everyMs?: number,
): ReadonlySignal<Resource<T>> {
  const state = useMemo(
    () =>
      signal<Resource<T>>({ data: undefined, error: undefined, loading: true, reload: () => {} }),
    [],
  );
  const pause = useRef(everyMs);
  pause.current = everyMs;
  // Before the first paint: the answer is on its way while the page is drawn.
  useLayoutEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let abort = new AbortController();
    const run = async () => {
      clearTimeout(timer);
      abort.abort();
      abort = new AbortController();
      const own = abort;
      state.value = { ...state.value, loading: true, reload };
      try {
        const data = await load(own.signal);
        if (!own.signal.aborted) state.value = { data, error: undefined, loading: false, reload };
      } catch (cause) {
        if (own.signal.aborted) return;
        const error = cause instanceof ApiError ? cause : new ApiError(0, "failed", String(cause));
        state.value = { ...state.value, error, loading: false, reload };
      }
      if (pause.current !== undefined && !own.signal.aborted) {
        timer = setTimeout(tick, pause.current);
      }
    };
    const tick = () => {
      // A page that nobody sees asks for nothing.
      if (document.hidden) timer = setTimeout(tick, 1000);
      else reload();
    };
    const reload = () => void run();
    const back = awaySince.subscribe((away) => {
      if (away === null && state.peek().error?.status === 0) reload();
    });
    reload();
    return () => {
      clearTimeout(timer);
      abort.abort();
      back();
    };
  }, [key]);
  return state;
}
