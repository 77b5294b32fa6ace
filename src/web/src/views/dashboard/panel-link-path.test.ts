import { expect, it } from "vitest";
import type { Choice } from "../../model/timeframe";
import { linkedPath } from "./panel-link-path";

const CHOICE: Choice = {
  resolution: "5m",
  range: "24h",
  fixed: undefined,
  display: undefined,
  zone: "UTC",
};

it("keeps the range, the variables and the time zone", () => {
  const params = new URLSearchParams("tz=Europe/Berlin&edit=1&only.load=abc");
  const chosen = { host: ["web 1", "web2"], dc: [] };
  expect(linkedPath("details", { choice: CHOICE, chosen, params })).toBe(
    "/dashboards/details?range=24h&resolution=5m&tz=Europe%2FBerlin&var.host=web+1&var.host=web2",
  );
});

it("keeps a fixed range and the chosen number", () => {
  const choice = { ...CHOICE, fixed: { start: 1000, end: 2000 }, display: "total" as const };
  const path = linkedPath("a", { choice, chosen: {}, params: new URLSearchParams() });
  expect(path).toBe("/dashboards/a?range=24h&resolution=5m&start=1000&end=2000&display=total");
});
