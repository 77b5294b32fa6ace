/** The reader's name for acknowledgements, silences and the like; this browser remembers it. */
import { effect, signal } from "@preact/signals";
import { store, stored } from "./preferences";

export const author = signal(stored("author") ?? "");
effect(() => store("author", author.value));
