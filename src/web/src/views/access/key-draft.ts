/** A key while it is edited: its scopes and expiry, and the body to send. Pure. */
import { includedBy } from "../../api/session";
import type { NewKey, Scope } from "../../api/types";
import { instantOfValue } from "../../model/field-time";
import { DAY } from "../../model/zone";

export const SCOPES: readonly { scope: Scope; allows: string }[] = [
  { scope: "ingest", allows: "Send samples and pings" },
  { scope: "read", allows: "Query series; list hosts, alerts, dashboards and silences" },
  { scope: "objects", allows: "Read, and change dashboards, annotations and silences" },
  { scope: "admin", allows: "All of these; delete series and hosts; manage keys" },
  { scope: "operate", allows: "Read metrics, status, storage, log and settings of the daemon" },
];

export const EXPIRIES = [
  { value: "", label: "Never" },
  { value: "7", label: "In 7 days" },
  { value: "30", label: "In 30 days" },
  { value: "90", label: "In 90 days" },
  { value: "365", label: "In a year" },
  { value: "at", label: "At a time…" },
] as const;

export interface KeyDraft {
  name: string;
  scopes: readonly Scope[];
  senders: string;
  /** The number of days; empty for never, `at` for the time in `at`. */
  expiry: string;
  /** A time in the format of form fields. */
  at: string;
}

export const EMPTY_KEY: KeyDraft = { name: "", scopes: [], senders: "", expiry: "", at: "" };

/** The first error in the form; `undefined` without errors. The daemon checks the rest. */
export function keyFault(draft: KeyDraft, zone: string, now: number): string | undefined {
  if (draft.name.trim() === "") return "Enter a name.";
  if (draft.scopes.length === 0) return "Choose a scope.";
  if (draft.expiry !== "at") return undefined;
  const at = instantOfValue(zone, draft.at);
  if (at === undefined) return "Enter the time at which the key expires.";
  return at <= now ? "This time is in the past." : undefined;
}

/** The body to send, with the chosen scopes that no other chosen scope includes. */
export function keyOf(draft: KeyDraft, zone: string, now: number): NewKey {
  const scopes = draft.scopes.filter((scope) => !includedBy(scope, draft.scopes));
  const key: NewKey = { name: draft.name.trim(), scopes };
  const senders = draft.senders.trim();
  if (senders !== "" && !draft.scopes.includes("admin")) key.senders = senders;
  const expires =
    draft.expiry === "at" ? instantOfValue(zone, draft.at) : now + Number(draft.expiry) * DAY;
  if (draft.expiry !== "" && expires !== undefined) key.expires = expires;
  return key;
}
