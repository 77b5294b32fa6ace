/** The line that compares the alerts that an action covers with the chosen ones. */
import { countWithNoun } from "../../model/words";
import type { ListedAlert } from "./listed";

interface Props {
  chosen: readonly ListedAlert[];
  covered: readonly ListedAlert[];
}

/** The number of active alerts that are covered, among them those that were not chosen. */
export function Coverage({ chosen, covered }: Props) {
  const keys = new Set(chosen.map(({ key }) => key));
  const others = covered.filter(({ key }) => !keys.has(key));
  const missing = keys.size - (covered.length - others.length);
  return (
    <p class={others.length > 0 || missing > 0 ? "warn" : "muted"} role="status">
      Covers {countWithNoun(covered.length, "active alert")}
      {others.length > 0 && `, ${others.length.toLocaleString("en")} of them not selected`}
      {missing > 0 &&
        `; ${countWithNoun(missing, "selected alert")} ${missing === 1 ? "is" : "are"} not covered`}
      .
    </p>
  );
}
