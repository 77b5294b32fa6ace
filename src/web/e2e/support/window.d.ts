/** Properties that the tests set or read on the browser's window. */
import type axe from "axe-core";

declare global {
  interface Window {
    axe: typeof axe;
    /** Set by the page: the drawn values of its charts, by title. */
    granaryCharts?: Map<
      string,
      { times: number[]; series: { key: string; values: (number | null | undefined)[] }[] }
    >;
    granarySaw: (what: string) => void;
    hacked?: unknown;
    /** Unanswered requests: see heap.ts. */
    requestsUnderWay: number;
    /** Set by a test to detect a reload of the document. */
    kept?: boolean;
  }
}
