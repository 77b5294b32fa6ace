/** What the tests leave at the browser's window, or look for there. */
import type axe from "axe-core";

declare global {
  interface Window {
    axe: typeof axe;
    granarySaw: (what: string) => void;
    hacked?: unknown;
    /** Set by a test, to see whether the document is still the same. */
    kept?: boolean;
  }
}
