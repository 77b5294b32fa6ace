/** An action that may fail: whether it runs, and the error of its last run. */
import { signal, type Signal } from "@preact/signals";
import { useMemo } from "preact/hooks";

export interface Attempt {
  busy: Signal<boolean>;
  error: Signal<string | undefined>;
  /** Runs the action; `say` returns the text of an error. */
  run: (act: () => Promise<void>, say?: (cause: unknown) => string) => Promise<void>;
}

/** The message of the daemon or the browser. */
export function causeText(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

export function createAttempt(): Attempt {
  const busy = signal(false);
  const error = signal<string | undefined>(undefined);
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
}

export function useAttempt(): Attempt {
  return useMemo(createAttempt, []);
}
