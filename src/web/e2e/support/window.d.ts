/** What the tests leave at the browser's window, or look for there. */
import type axe from "axe-core";

declare global {
  interface Window {
    axe: typeof axe;
    /** The page's own: what its charts draw, by title. */
    granaryCharts?: Map<
      string,
      { times: number[]; series: { key: string; values: (number | null | undefined)[] }[] }
    >;
    granarySaw: (what: string) => void;
    hacked?: unknown;
    /** Requests without an answer: see heap.ts. */
    requestsUnderWay: number;
    /** Set by a test, to see whether the document is still the same. */
    kept?: boolean;
  }
}
