/** The daemon's check of a rule, and the rule's current matches. */
import { useSignal } from "@preact/signals";
import { api } from "../api/client";
import { countWithNoun } from "../model/words";
import { useDebouncedCheck, type CheckResult } from "../parts/debounced-check";
import { ErrorLine } from "../parts/dialog";
import { Icon } from "../parts/icon";

export function RuleCheck({ text, compared }: { text: string; compared: string }) {
  /** The number of alerts. */
  const result: CheckResult<number> = useSignal(undefined);
  const check = async (signal: AbortSignal) => {
    await api.checkRules(text, signal);
    const { data } = await api.query({ query: compared }, signal);
    return data?.result.length ?? 0;
  };
  const isChecking = useDebouncedCheck(result, check, [text, compared]);
  const checked = result.value;
  if (isChecking || checked === undefined) return <p class="muted">Checking…</p>;
  if (typeof checked !== "number") return <ErrorLine message={checked.failed} />;
  return (
    <p class="rule-good" role="status">
      <Icon name="check" /> Valid. It matches{" "}
      {checked === 0 ? "nothing" : countWithNoun(checked, "alert")} now.
    </p>
  );
}
