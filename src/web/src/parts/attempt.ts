/** Something that may fail: whether it is under way, and why it failed the last time. */
import { useSignal, type Signal } from "@preact/signals";
import { useMemo } from "preact/hooks";

export interface Attempt {
  busy: Signal<boolean>;
  error: Signal<string | undefined>;
  /** Does it; `say` finds the words for a failure. */
  run: (act: () => Promise<void>, say?: (cause: unknown) => string) => Promise<void>;
}

/** The daemon's words, or the browser's. */
export function causeText(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

export function useAttempt(): Attempt {
  const busy = useSignal(false);
  const error = useSignal<string | undefined>(undefined);
  return useMemo(() => {
    const run: Attempt["run"] = async (act, say = causeText) => {
      busy.value = true;
      error.value = undefined;
      try {
        await act();
      } catch (cause) {
        error.value = say(cause);
      }
      busy.value = false;
    };
    return { busy, error, run };
  }, []);
}
