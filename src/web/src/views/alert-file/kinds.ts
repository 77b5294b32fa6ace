/** The two kinds of texts that the page edits: rules, of which there are many, and receivers. */
import { ApiError, api } from "../../api/client";
import { RECEIVERS_SCOPES } from "../../api/session";
import type { Scope, TextFault } from "../../api/types";
import { isSlug } from "../../model/slug";
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

/** What the daemon has of a text. */
export type Loaded =
  | { state: "stored"; stored: StoredText }
  | { state: "new" }
  /** The text cannot be read: it can only be replaced or deleted. */
  | { state: "damaged"; faults: readonly TextFault[] }
  | { state: "missing" }
  /** The page cannot change the text. */
  | { state: "read-only"; reason: string };

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
  /** The scopes that a change needs. */
  needs: readonly Scope[];
  /** The address of the list that contains the text. */
  list: string;
  effectOfDeletion: string;
  check: (name: string, text: string, signal: AbortSignal) => Promise<Checked>;
  save: (name: string, version: number | null, text: string) => Promise<Saved>;
  /** A damaged text has no version. */
  remove: (name: string, version?: number) => Promise<unknown>;
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
  needs: ["admin"],
  list: "/alerts?show=rules",
  effectOfDeletion: "The daemon stops evaluating them, and their alerts end.",
  check: async (...args) => counted(await api.checkRuleText(...args), ruleCounts),
  save: async (...args) => counted(await api.saveRuleText(...args), ruleCounts),
  remove: api.deleteRuleText,
  load: async (name, signal) => {
    if (!isSlug(name)) return { state: "missing" };
    try {
      return { state: "stored", stored: counted(await api.ruleText(name, signal), ruleCounts) };
    } catch (cause) {
      if (!(cause instanceof ApiError) || cause.status === 0) throw cause;
      const { files } = await api.ruleFiles(signal);
      const entry = files.find((file) => file.origin === "page" && file.name === name);
      if (entry?.version === null) return { state: "damaged", faults: entry.faults };
      if (isMissing(cause)) return { state: "missing" };
      throw cause;
    }
  },
};

export const RECEIVERS: TextKind = {
  what: "receivers",
  title: "Receivers",
  isNamed: false,
  template: RECEIVERS_TEMPLATE,
  needs: RECEIVERS_SCOPES,
  list: "/alerts?show=receivers",
  effectOfDeletion: "Alerts notify nobody until there are receivers again.",
  check: async (_, text, signal) => counted(await api.checkReceivers(text, signal), receiverCounts),
  save: async (_, ...args) => counted(await api.saveReceivers(...args), receiverCounts),
  remove: (_, version) => api.deleteReceivers(version),
  load: async (_, signal) => {
    const { notifications } = await api.ruleFiles(signal);
    const { version, editable, faults, reason = "They are in a file." } = notifications;
    if (!editable) return { state: "read-only", reason };
    if (version === null) {
      return faults.length > 0 ? { state: "damaged", faults } : { state: "new" };
    }
    return { state: "stored", stored: counted(await api.receiversText(signal), receiverCounts) };
  },
};

/** The stored text; `undefined` if there is none that can be read. */
export async function storedText(kind: TextKind, name: string): Promise<StoredText | undefined> {
  const loaded = await kind.load(name);
  return loaded.state === "stored" ? loaded.stored : undefined;
}

export const isConflict = (cause: unknown) =>
  cause instanceof ApiError && cause.code === "conflict";

export const isMissing = (cause: unknown) => cause instanceof ApiError && cause.status === 404;

/** The faults in an answer that refuses a text. */
export function faultsIn(cause: unknown): TextFault[] | undefined {
  if (!(cause instanceof ApiError) || cause.status !== 422) return undefined;
  return (cause.body as { faults?: TextFault[] } | undefined)?.faults;
}
