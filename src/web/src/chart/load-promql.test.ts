import { expect, it } from "vitest";
import { DAY, HOUR } from "../model/zone";
import { evaluationTimes, evenRuns } from "./load-promql";

const berlinDays = (start: string, end: string) =>
  ({
    start: Date.parse(start),
    end: Date.parse(end),
    resolution: "1d",
    zone: "Europe/Berlin",
  }) as const;

it("evaluates an expression at the zone's midnights, also around days of 23 and 25 hours", () => {
  const spring = berlinDays("2026-03-28T00:00+01:00", "2026-03-31T00:00+02:00");
  const times = evaluationTimes(spring, Infinity);
  expect(times.map((at) => (at - spring.start) / HOUR)).toEqual([0, 24, 47, 71]);
  expect(evenRuns(times, DAY)).toEqual([
    [times[0], times[1]],
    [times[2], times[3]],
  ]);
  const autumn = berlinDays("2026-10-24T00:00+02:00", "2026-10-27T00:00+01:00");
  expect(evaluationTimes(autumn, Infinity).map((at) => (at - autumn.start) / HOUR)).toEqual([
    0, 24, 49, 73,
  ]);
});

it("evaluates nothing in the future", () => {
  const window = { start: 0, end: 6 * HOUR, resolution: "1h", zone: "UTC" } as const;
  expect(evaluationTimes(window, 2.5 * HOUR)).toEqual([0, HOUR, 2 * HOUR]);
  expect(evaluationTimes(window, 6 * HOUR).at(-1)).toBe(6 * HOUR);
  expect(evaluationTimes(window, -1)).toEqual([]);
  expect(evenRuns([], HOUR)).toEqual([]);
  expect(evenRuns([0, HOUR, 2 * HOUR], HOUR)).toEqual([[0, 2 * HOUR]]);
});
