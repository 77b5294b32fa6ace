/** Requests from the page to the daemon. */
import type { Page } from "@playwright/test";

/** The time for two refreshes of charts, which are ten seconds apart. */
const REFRESH_DEADLINE = { timeout: 25_000 };

/** Waits for the next answered chart request with this metric and resolution, and an expected length. */
export function nextChartRequest(
  page: Page,
  metric = "system_load_1m",
  resolution = "1m",
  isExpectedLength: (length: number) => boolean = () => true,
) {
  return page
    .waitForResponse((answer) => {
      const { pathname, searchParams: params } = new URL(answer.url());
      const requestedMetrics = params.get("metrics")?.split(",") ?? [params.get("metric")];
      const isOfMetric = requestedMetrics.includes(metric);
      const isOfResolution =
        pathname === "/api/v1/chart" && params.get("resolution") === resolution;
      return (
        isOfResolution &&
        isOfMetric &&
        isExpectedLength(Number(params.get("end")) - Number(params.get("start")))
      );
    }, REFRESH_DEADLINE)
    .then((answer) => {
      const params = new URL(answer.url()).searchParams;
      const number = (name: string) => Number(params.get(name));
      return { params, length: number("end") - number("start") };
    });
}
