/** Pictures of charts of histograms, for review: target/page-screenshots. */
import { join } from "node:path";
import { areaOf, boxOf, nextFrame } from "../support/charts";
import { postLatencies } from "../support/histograms";
import { openSettled } from "../support/settled";
import { test } from "../support/test";

const FOLDER = join(import.meta.dirname, "../../../../target/page-screenshots");
const WIDTHS = [1440, 1920, 390];
const METRIC = "request_wait";
const EXPLORE = `/explore?metric=${METRIC}&resolution=1m&range=2h`;

const panel = (title: string, kind: string, x: number, y: number, more: object = {}) => ({
  ...{ id: title.replace(/\W/g, ""), kind, x, y, w: 6, h: 8, title },
  queries: [{ kind: "metric", metric: METRIC, tags: "host=a" }],
  ...more,
});
const expression = `histogram_fraction(-Inf, 0.3, sum(increase(${METRIC}[1h])))`;
const PANELS = [
  panel("Percentiles", "chart", 0, 0),
  panel("Heat map", "heatmap", 6, 0),
  panel("p99 of hosts", "chart", 0, 8, {
    queries: [{ kind: "metric", metric: METRIC, tags: "" }],
  }),
  panel("Under 300 ms", "stat", 6, 8, {
    queries: [{ kind: "promql", expression, legend: "all hosts" }],
    unit: "ratio",
    thresholds: [{ level: "bad" }, { from: 0.99, level: "good" }],
  }),
];

test("charts of histograms", async ({ page, startDaemon }) => {
  const daemon = await startDaemon();
  for (const host of ["a", "b", "c"]) await postLatencies(daemon, METRIC, { host }, 110);
  const dashboard = { schema: 1, title: "Latency", variables: [], panels: PANELS, range: "2h" };
  await daemon.post("/api/v1/dashboards/own", { version: null, dashboard }, "PUT");
  const views: [string, string, string | undefined][] = [
    ["percentiles", `${EXPLORE}&tags=host=a`, METRIC],
    ["heat", `${EXPLORE}&number=distribution`, METRIC],
    ["board", "/dashboards/own?resolution=1m", undefined],
  ];
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: width < 500 ? 844 : 1080 });
    for (const colorScheme of ["dark", "light"] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      for (const [name, path, title] of views) {
        await openSettled(page, daemon.url + path);
        if (title) {
          const { at, y, height } = await boxOf(areaOf(page, title));
          await page.mouse.move(at(0.6), y + 0.5 * height);
          await nextFrame(page);
        }
        const file = `histograms-${name}-${width}-${colorScheme}.png`;
        await page.screenshot({ path: join(FOLDER, file), fullPage: name === "board" });
      }
    }
  }
});
