/** The reader's name for acknowledgements and silences, which this browser remembers. */
import { effect, signal } from "@preact/signals";
import { store, stored } from "./preferences";

export const author = signal(stored("author") ?? "");
effect(() => store("author", author.value));
