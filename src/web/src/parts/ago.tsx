/** How long ago something was, by the second. Only the text changes, not what stands round it. */
import { computed, signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { now } from "../api/client";
import { agoText } from "../model/words";

let timer: ReturnType<typeof setInterval> | undefined;

/** The daemon's time, anew each second while somebody looks at it. */
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
