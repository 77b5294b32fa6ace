/** The daemon's check of a rule, and the rule's current matches. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError, api } from "../api/client";
import { countWithNoun } from "../model/words";
import { ErrorLine } from "../parts/dialog";
import { Icon } from "../parts/icon";

/** The pause in typing before the daemon checks the rule. */
const CHECK_DELAY_MS = 400;

interface CheckResult {
  isValid: boolean;
  message: string;
}

export function RuleCheck({ text, compared }: { text: string; compared: string }) {
  const result = useSignal<CheckResult | undefined>(undefined);
  useEffect(() => {
    result.value = undefined;
    const abort = new AbortController();
    const check = async () => {
      try {
        await api.checkRules(text, abort.signal);
        const { data } = await api.query({ query: compared }, abort.signal);
        const count = data?.result.length ?? 0;
        const matchesText = count === 0 ? "nothing" : countWithNoun(count, "alert");
        result.value = { isValid: true, message: `Valid. It matches ${matchesText} now.` };
      } catch (cause) {
        if (abort.signal.aborted) return;
        const message = cause instanceof ApiError ? cause.message : String(cause);
        result.value = { isValid: false, message };
      }
    };
    const timer = setTimeout(() => void check(), CHECK_DELAY_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text, compared]);
  if (!result.value) return <p class="muted">Checking…</p>;
  if (!result.value.isValid) return <ErrorLine message={result.value.message} />;
  return (
    <p class="rule-good" role="status">
      <Icon name="check" /> {result.value.message}
    </p>
  );
}
