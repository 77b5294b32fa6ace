/** One line about the text in the box: saved, valid, faulty, or being checked. */
import { countWithNoun } from "../../model/words";
import { Icon } from "../../parts/icon";
import type { Edit } from "./edit";

interface Props {
  checked: Edit["checked"]["value"];
  /** True while the newest text is not checked yet. */
  isChecking: boolean;
  /** True while somebody else's change keeps the text from being saved. */
  hasConflict: boolean;
  /** A note about the last save. */
  note: string | undefined;
}

export function Status(props: Props) {
  const { tone, text } = statusOf(props);
  return (
    <p class={`text-status ${tone}`} role="status">
      {tone !== "muted" && <Icon name={tone === "good" ? "check" : "warning"} />}
      {text}
    </p>
  );
}

function statusOf({ checked, isChecking, hasConflict, note }: Props) {
  if (hasConflict) return { tone: "bad", text: "Not saved: somebody else changed this text" };
  if (note !== undefined) return { tone: "good", text: note };
  if (checked === undefined) return { tone: "muted", text: "Checking…" };
  if ("failed" in checked) return { tone: "bad", text: `Not checked: ${checked.failed}` };
  if (checked.faults.length > 0) {
    const count = countWithNoun(checked.faults.length, "fault");
    return { tone: "bad", text: `${count}: correct the text to save it` };
  }
  // The words stay while the next text is checked: screen readers repeat each change.
  return { tone: isChecking ? "muted" : "good", text: `Valid: ${checked.counts}` };
}
