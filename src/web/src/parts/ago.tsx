/** The time since an event, updated every second. Only the text node changes. */
import { computed, signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { now } from "../api/client";
import { agoText } from "../model/words";

let timer: ReturnType<typeof setInterval> | undefined;

/** The daemon's time, updated each second while the page is visible. */
export const second = signal(now(), {
  watched() {
    second.value = now();
    timer = setInterval(() => (second.value = now()), 1000);
  },
  unwatched() {
    clearInterval(timer);
  },
});

export function Ago({ at }: { at: number }) {
  const text = useMemo(() => computed(() => agoText(second.value - at)), [at]);
  return <>{text}</>;
}
