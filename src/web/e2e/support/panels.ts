/** A dashboard with one chart for each number of series. */
import type { Daemon } from "./daemon";

/** Stores the dashboard "many": two charts a row, of the series with the tag `set=nCOUNT`. */
export async function storeMany(
  daemon: Daemon,
  { metric, counts, title }: { metric: string; counts: number[]; title: (count: number) => string },
): Promise<void> {
  const panels = counts.map((count, k) => ({
    id: `p${count}`,
    x: (k % 2) * 6,
    y: Math.floor(k / 2) * 6,
    w: 6,
    h: 6,
    title: title(count),
    kind: "chart",
    queries: [{ kind: "metric", metric, tags: `set=n${count}` }],
  }));
  const dashboard = { schema: 1, title: "Many", variables: [], panels };
  await daemon.post("/api/v1/dashboards/many", { version: null, dashboard }, "PUT");
}
