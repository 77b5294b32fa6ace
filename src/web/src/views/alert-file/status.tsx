/** One line about the text in the box: saved, valid, faulty, or being checked. */
import { countWithNoun } from "../../model/words";
import { Icon } from "../../parts/icon";
import type { Check } from "./check";

interface Props {
  check: Check;
  /** A note about the last save. */
  note: string | undefined;
}

export function Status({ check, note }: Props) {
  const { tone, text } = statusOf(check, note);
  return (
    <p class={`text-status ${tone}`} role="status">
      {tone !== "muted" && <Icon name={tone === "good" ? "check" : "warning"} />}
      {text}
    </p>
  );
}

function statusOf({ result, isChecking }: Check, note: string | undefined) {
  const checked = result.value;
  if (note !== undefined) return { tone: "good", text: note };
  if (checked && "faults" in checked && checked.faults.length > 0) {
    const count = countWithNoun(checked.faults.length, "fault");
    return { tone: "bad", text: `${count}: correct the text to save it` };
  }
  if (isChecking.value || checked === undefined) return { tone: "muted", text: "Checking…" };
  if ("failed" in checked) return { tone: "bad", text: `Not checked: ${checked.failed}` };
  return { tone: "good", text: `Valid: ${checked.counts}` };
}
