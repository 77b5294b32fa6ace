/** Unsaved work: the page and the browser ask before the reader leaves the view. */
import { useEffect } from "preact/hooks";
import { signal } from "@preact/signals";

/** A description of unsaved work; `undefined` without any. */
export const unsavedWork = signal<string | undefined>(undefined);

/** Returns true if the reader may go to another view. */
export function mayLeave(): boolean {
  const description = unsavedWork.peek();
  if (description === undefined) return true;
  const isConfirmed = confirm(`${description} Leave without saving?`);
  if (isConfirmed) unsavedWork.value = undefined;
  return isConfirmed;
}

/** Asks before the page is left while work is unsaved. */
export function useUnsavedWarning(description: string | undefined): void {
  useEffect(() => {
    unsavedWork.value = description;
    if (description === undefined) return;
    const askBeforeUnload = (event: BeforeUnloadEvent) => {
      if (unsavedWork.peek() !== undefined) event.preventDefault();
    };
    addEventListener("beforeunload", askBeforeUnload);
    return () => {
      unsavedWork.value = undefined;
      removeEventListener("beforeunload", askBeforeUnload);
    };
  }, [description]);
}
