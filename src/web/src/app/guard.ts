/** Work that is not saved: whoever leaves it is asked first, within the page and by the browser. */
import { useEffect } from "preact/hooks";
import { signal } from "@preact/signals";

/** What would be lost; `undefined` when nothing. */
export const unsaved = signal<string | undefined>(undefined);

/** Whether one may go to another view. */
export function mayLeave(): boolean {
  const lost = unsaved.peek();
  if (lost === undefined) return true;
  const isLeft = confirm(`${lost} Leave without saving?`);
  if (isLeft) unsaved.value = undefined;
  return isLeft;
}

/** Holds whoever leaves back while there is something to lose. */
export function useUnsaved(lost: string | undefined): void {
  useEffect(() => {
    unsaved.value = lost;
    if (lost === undefined) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => {
      unsaved.value = undefined;
      removeEventListener("beforeunload", ask);
    };
  }, [lost]);
}
