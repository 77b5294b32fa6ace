/**
 * The key of this tab, for a daemon with access control. It is kept for the session of the tab,
 * and sent with each request to the daemon.
 */
import { signal } from "@preact/signals";
import { nameProject } from "./project";

const STORED_AS = "granary-key";

function readKey(): string {
  try {
    return sessionStorage.getItem(STORED_AS) ?? "";
  } catch {
    return "";
  }
}

/** The key; empty without one. */
export const key = signal(readKey());

/** Keeps the key, or forgets it when it is empty. */
export function keepKey(text: string): void {
  key.value = text;
  try {
    if (text === "") sessionStorage.removeItem(STORED_AS);
    else sessionStorage.setItem(STORED_AS, text);
  } catch {
    // Without storage, the key lasts until the page is loaded again.
  }
}

/** The ID in the text of this tab's key; empty without a key. */
export function keyId(): string {
  return key.value.split("_")[1] ?? "";
}

/** The headers of a request, with the key and the project if there are any. */
export function withKey(headers: HeadersInit | undefined): Headers {
  const all = new Headers(headers);
  if (key.value !== "") all.set("authorization", `Bearer ${key.value}`);
  nameProject(all);
  return all;
}
