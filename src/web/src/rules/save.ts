/** Saves a rule on the daemon, as a text of its own. */
import { ApiError, api } from "../api/client";
import { slugOf } from "../model/slug";
import { ruleFile, type RuleDraft } from "./draft";

/** A name for the text of a rule: `LoadHigh` becomes `load-high`. */
export function textNameOf(rule: string): string {
  return slugOf(rule.replace(/([a-z0-9])([A-Z])/g, "$1-$2")) || "rule";
}

export interface SavedRule {
  /** The name of the rule's text. */
  text: string;
  /** True if there was such a text already, so that nothing was saved. */
  isTaken: boolean;
}

/** Saves the rule, which is in effect then, unless there are rules of this name. */
export async function saveRule(draft: RuleDraft): Promise<SavedRule> {
  const text = textNameOf(draft.name);
  try {
    await api.saveRuleText(text, null, ruleFile(draft));
    return { text, isTaken: false };
  } catch (cause) {
    if (cause instanceof ApiError && cause.code === "conflict") return { text, isTaken: true };
    throw cause;
  }
}
