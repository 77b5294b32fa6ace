/** The daemon's check of a text while it is typed. */
import { useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { causeText } from "../../parts/attempt";
import type { Checked, TextKind } from "./kinds";

export interface Check {
  /** The result for the last checked text; `undefined` before the first one. */
  result: Signal<Checked | { failed: string } | undefined>;
  /** True while the newest text is not checked yet. */
  isChecking: Signal<boolean>;
}

/** The pause in typing before a check. */
const CHECK_DELAY_MS = 400;

/** Checks each new text after a pause; the last result stays until the next one. */
export function useCheck(kind: TextKind, name: string, text: string): Check {
  const result: Check["result"] = useSignal(undefined);
  const isChecking = useSignal(true);
  useEffect(() => {
    isChecking.value = true;
    const abort = new AbortController();
    const check = async () => {
      try {
        result.value = await kind.check(name, text, abort.signal);
      } catch (cause) {
        if (abort.signal.aborted) return;
        result.value = { failed: causeText(cause) };
      }
      isChecking.value = false;
    };
    const timer = setTimeout(() => void check(), result.peek() ? CHECK_DELAY_MS : 0);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [kind, name, text]);
  return { result, isChecking };
}
