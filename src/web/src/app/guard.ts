/** Unsaved work: the page and the browser ask before the reader leaves the view. */
import { useEffect } from "preact/hooks";
import { signal } from "@preact/signals";

/** A description of unsaved work; `undefined` without any. */
export const unsaved = signal<string | undefined>(undefined);

/** Whether the reader may go to another view. */
export function mayLeave(): boolean {
  const lost = unsaved.peek();
  if (lost === undefined) return true;
  const isLeft = confirm(`${lost} Leave without saving?`);
  if (isLeft) unsaved.value = undefined;
  return isLeft;
}

/** Asks before the page is left while work is unsaved. */
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
