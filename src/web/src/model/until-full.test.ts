import { expect, it } from "vitest";
import { isFullSoon, shortUntilFull, untilFullText, type UntilFull } from "./until-full";
import { DAY, HOUR, MINUTE } from "./zone";

function until(median: number, early?: number, late?: number, mount?: string): UntilFull {
  return { host: "a", mount, early, median, late };
}

it("writes the median with the quantiles around it, in one unit", () => {
  const text = (median: number, early?: number, late?: number) =>
    untilFullText(until(median, early, late, "/"));
  expect(text(8.9 * DAY, 7.2 * DAY, 14.4 * DAY)).toBe("/ full in 9 days (7 to 14)");
  expect(text(30 * HOUR, 20 * HOUR, 3 * DAY)).toBe("/ full in 30 hours (20 to 72)");
  expect(text(90 * MINUTE, 50 * MINUTE, 2 * HOUR)).toBe("/ full in 90 minutes (50 to 120)");
  expect(text(MINUTE, MINUTE, MINUTE)).toBe("/ full in 1 minute");
});

it("leaves out a range that is narrower than the unit, and an end without a forecast", () => {
  expect(untilFullText(until(9 * DAY, 8.8 * DAY, 9.2 * DAY, "/a"))).toBe("/a full in 9 days");
  expect(untilFullText(until(18 * DAY, 11 * DAY, undefined, "/a"))).toBe(
    "/a full in 18 days (11 or more)",
  );
  expect(untilFullText(until(9 * DAY))).toBe("Memory exhausted in 9 days");
});

it("needs attention when it is probably full within a week", () => {
  expect(isFullSoon(until(3 * DAY, DAY, 6 * DAY))).toBe(true);
  expect(isFullSoon(until(3 * DAY, DAY, 8 * DAY))).toBe(false);
  expect(isFullSoon(until(3 * DAY, DAY))).toBe(false);
});

it("writes one unit in a cell", () => {
  expect(shortUntilFull(until(8.9 * DAY))).toBe("9 d");
  expect(shortUntilFull(until(0))).toBe("0 min");
});
