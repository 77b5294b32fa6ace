/** What the reader calls themselves where something is done in their name: kept by this browser. */
import { effect, signal } from "@preact/signals";
import { store, stored } from "./preferences";

export const author = signal(stored("author") ?? "");
effect(() => store("author", author.value));
