/** The daemon's check of something that is being typed. */
import { useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { loginProblem } from "../api/session";
import { causeText } from "./attempt";

/** The result for the last checked input; `undefined` before the first one. */
export type CheckResult<T> = Signal<T | { failed: string } | undefined>;

/** The pause in typing before a check. */
const CHECK_DELAY_MS = 400;

/**
 * Checks each new input after a pause; the last result stays until the next one. Returns true while
 * the newest input is not checked yet, also while the daemon asks for a login.
 */
export function useDebouncedCheck<T>(
  result: CheckResult<T>,
  check: (signal: AbortSignal) => Promise<T>,
  inputs: readonly unknown[],
): boolean {
  const isChecking = useSignal(true);
  const isLoggedOut = loginProblem.value !== null;
  useEffect(() => {
    isChecking.value = true;
    if (isLoggedOut) return;
    const abort = new AbortController();
    const run = async () => {
      try {
        result.value = await check(abort.signal);
      } catch (cause) {
        if (abort.signal.aborted) return;
        result.value = { failed: causeText(cause) };
      }
      isChecking.value = false;
    };
    const timer = setTimeout(() => void run(), result.peek() ? CHECK_DELAY_MS : 0);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [isLoggedOut, ...inputs]);
  return isChecking.value;
}
