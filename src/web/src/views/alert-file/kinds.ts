/** The two kinds of texts that the page edits: rules, of which there are many, and receivers. */
import { ApiError, api } from "../../api/client";
import type { TextFault } from "../../api/types";
import { href } from "../../app/address";
import { countWithNoun } from "../../model/words";
import { RECEIVERS_TEMPLATE, RULES_TEMPLATE } from "./templates";

/** A stored text. */
export interface StoredText {
  name: string;
  version: number;
  changed: number;
  text: string;
  /** Its content: "2 rules in 1 group". */
  counts: string;
}

/** The text that a view shows, and whether it can be changed. */
export interface Loaded {
  /** `undefined` for a new text. */
  stored: StoredText | undefined;
  /** The reason why the page cannot change the text. */
  reason: string | undefined;
}

export interface Checked {
  faults: TextFault[];
  counts: string;
}

/** How texts of a kind are stored, and their words. */
export interface TextKind {
  /** What a text contains: "rules". */
  what: string;
  title: string;
  /** True if there are several texts, each with a name. */
  isNamed: boolean;
  template: string;
  /** The address of the list that contains the text. */
  list: string;
  effectOfDeletion: string;
  check: (name: string, text: string, signal: AbortSignal) => Promise<Checked>;
  save: (name: string, version: number | null, text: string) => Promise<Saved>;
  remove: (name: string, version: number) => Promise<unknown>;
  /** Rejects when there is no such text of rules; receivers may be absent. */
  load: (name: string, signal?: AbortSignal) => Promise<Loaded>;
}

interface Saved {
  version: number;
  counts: string;
}

const ruleCounts = ({ rules, groups }: { rules: number; groups: number }) =>
  `${countWithNoun(rules, "rule")} in ${countWithNoun(groups, "group")}`;
const receiverCounts = ({ receivers }: { receivers: number }) =>
  countWithNoun(receivers, "receiver");

/** Adds its counts to an answer. */
function counted<T>(answer: T, counts: (answer: T) => string): T & { counts: string } {
  return { ...answer, counts: counts(answer) };
}

export const RULES: TextKind = {
  what: "rules",
  title: "Rules",
  isNamed: true,
  template: RULES_TEMPLATE,
  list: href("/alerts", { show: "rules" }),
  effectOfDeletion: "The daemon stops evaluating them, and their alerts end.",
  check: async (...args) => counted(await api.checkRuleText(...args), ruleCounts),
  save: async (...args) => counted(await api.saveRuleText(...args), ruleCounts),
  remove: api.deleteRuleText,
  load: async (...args) => {
    return { stored: counted(await api.ruleText(...args), ruleCounts), reason: undefined };
  },
};

export const RECEIVERS: TextKind = {
  what: "receivers",
  title: "Receivers",
  isNamed: false,
  template: RECEIVERS_TEMPLATE,
  list: href("/alerts", { show: "receivers" }),
  effectOfDeletion: "Alerts notify nobody until there are receivers again.",
  check: async (_, text, signal) => counted(await api.checkReceivers(text, signal), receiverCounts),
  save: async (_, ...args) => counted(await api.saveReceivers(...args), receiverCounts),
  remove: (_, version) => api.deleteReceivers(version),
  load: async (_, signal) => {
    const { notifications } = await api.ruleFiles(signal);
    const { version, editable, reason = "They are in a file." } = notifications;
    if (!editable) return { stored: undefined, reason };
    if (version === null) return { stored: undefined, reason: undefined };
    const stored = counted(await api.receiversText(signal), receiverCounts);
    return { stored, reason: undefined };
  },
};

/** The stored text; `undefined` if there is none. */
export async function storedText(kind: TextKind, name: string): Promise<StoredText | undefined> {
  try {
    return (await kind.load(name)).stored;
  } catch (cause) {
    if (isMissing(cause)) return undefined;
    throw cause;
  }
}

export const isConflict = (cause: unknown) =>
  cause instanceof ApiError && cause.code === "conflict";

export const isMissing = (cause: unknown) => cause instanceof ApiError && cause.status === 404;

/** The faults in an answer that refuses a text. */
export function faultsIn(cause: unknown): TextFault[] | undefined {
  if (!(cause instanceof ApiError) || cause.status !== 422) return undefined;
  return (cause.body as { faults?: TextFault[] } | undefined)?.faults;
}
