/** The reader's name for acknowledgements and silences, which this browser remembers. */
import { effect, signal } from "@preact/signals";
import { writeStored, readStored } from "./preferences";

export const author = signal(readStored("author") ?? "");
effect(() => writeStored("author", author.value));
