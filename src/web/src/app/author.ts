/**
 * The author of acknowledgements and silences: the caller, whose name the daemon stores, or the
 * name that the reader entered, which this browser remembers.
 */
import { computed, effect, signal } from "@preact/signals";
import { caller } from "../api/session";
import { readStored, writeStored } from "./preferences";

/** The name that the reader entered. */
export const enteredAuthor = signal(readStored("author") ?? "");
effect(() => writeStored("author", enteredAuthor.value));

/** The name of the caller; `undefined` without access control, so that the reader enters one. */
export const callerName = computed(() => {
  const { kind, name } = caller.value ?? { kind: "none", name: "" };
  return kind === "none" ? undefined : name;
});

export const author = computed(() => callerName.value ?? enteredAuthor.value);
