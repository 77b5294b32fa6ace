/** Values that stay the same object while they are equal, so that nothing is drawn again. */
import { computed, type ReadonlySignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { isSame } from "../model/same";

/** A computed signal that keeps its object until an unequal object is computed. */
export function steady<T>(compute: () => T): ReadonlySignal<T> {
  let last: { value: T } | undefined;
  return computed(() => {
    const value = compute();
    if (!last || !isSame(last.value, value)) last = { value };
    return last.value;
  });
}

/** A value of a component that keeps its object from one drawing to the next. */
export function useSteady<T>(value: T): T {
  const last = useRef(value);
  if (!isSame(last.current, value)) last.current = value;
  return last.current;
}
