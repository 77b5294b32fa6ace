/** Saves a rule on the daemon, as a text of its own. */
import { api } from "../api/client";
import { freeName, slugOf } from "../model/slug";
import { ruleFile, type RuleDraft } from "./draft";

/** A name for the text of a rule: `LoadHigh` becomes `load-high`. */
export function textNameOf(rule: string, taken: readonly string[]): string {
  const words = rule.replace(/([a-z0-9])([A-Z])/g, "$1-$2");
  return freeName(slugOf(words), taken, "rule");
}

/** Saves the rule, which is in effect then; resolves to the name of its text. */
export async function saveRule(draft: RuleDraft): Promise<string> {
  const { files } = await api.ruleFiles();
  const taken = files.filter(({ origin }) => origin === "page").map(({ name }) => name);
  const name = textNameOf(draft.name, taken);
  await api.saveRuleText(name, null, ruleFile(draft));
  return name;
}
