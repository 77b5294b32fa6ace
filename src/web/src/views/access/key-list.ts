/** The order and the filter of the list of keys, and the state of a key. Pure. */
import type { KeyEntry } from "../../api/types";
import { DAY } from "../../model/zone";

export type KeyColumn = "name" | "created" | "expires" | "used";

/** A key that expires within this time is marked. */
const SOON_MS = 7 * DAY;

export interface KeyState {
  tone: "good" | "warn" | "bad";
  label: string;
}

/** Returns the state of a key that the reader should notice, or else `Valid`. */
export function keyState({ expires, overlap_until }: KeyEntry, now: number): KeyState {
  if (expires !== null && expires <= now) return { tone: "bad", label: "Expired" };
  if (expires !== null && expires - now < SOON_MS) return { tone: "warn", label: "Expires soon" };
  if (overlap_until !== null && overlap_until > now) return { tone: "warn", label: "Rotating" };
  return { tone: "good", label: "Valid" };
}

/** Returns the keys that contain each word in their name, ID, scopes or senders. */
export function keysMatching(keys: readonly KeyEntry[], text: string): KeyEntry[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return keys.filter(({ name, id, scopes, senders }) => {
    const searched = [name, id, ...scopes, senders ?? ""].join(" ").toLowerCase();
    return words.every((word) => searched.includes(word));
  });
}

/** Returns the keys by name, newest first, earliest expiry first, or longest unused first. */
export function keysBy(keys: readonly KeyEntry[], column: KeyColumn): KeyEntry[] {
  const rank = {
    name: () => 0,
    created: ({ created }: KeyEntry) => -created,
    expires: ({ expires }: KeyEntry) => expires ?? Infinity,
    used: ({ used }: KeyEntry) => used ?? 0,
  }[column];
  return [...keys].sort((a, b) => {
    const [one, other] = [rank(a), rank(b)];
    return one === other ? a.name.localeCompare(b.name) : one < other ? -1 : 1;
  });
}
