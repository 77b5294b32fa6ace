import { expect, it } from "vitest";
import type { PromqlMatrix, Tags } from "../../api/types";
import { episodesOf, stepOf } from "./history";

const MINUTE = 60_000;

const matrix = (...series: [Tags, number[], string?][]): PromqlMatrix => ({
  resultType: "matrix",
  result: series.map(([metric, minutes, value = "1"]) => ({
    metric,
    values: minutes.map((minute) => [minute * 60, value]),
  })),
});

const firing = {
  __name__: "ALERTS",
  alertname: "High",
  alertstate: "firing",
  host: "a",
  team: "x",
};

it("makes stretches of what is seen without a gap, the newest first", () => {
  const states = matrix([firing, [1, 2, 3, 7, 8]], [{ ...firing, alertstate: "pending" }, [0, 6]]);
  const found = episodesOf(states, matrix(), { step: MINUTE, end: 20 * MINUTE });
  expect(
    found.map(({ state, start, end }) => [state, start / MINUTE, (end ?? 0) / MINUTE]),
  ).toEqual([
    ["firing", 7, 9],
    ["pending", 6, 7],
    ["firing", 1, 4],
    ["pending", 0, 1],
  ]);
  expect(found[0]?.labels).toEqual({ host: "a", team: "x" });
});

it("says of what is there at the last look that it lasts", () => {
  const { end } =
    episodesOf(matrix([firing, [9, 10]]), matrix(), { step: MINUTE, end: 10 * MINUTE })[0] ?? {};
  expect(end).toBeUndefined();
});

it("tells what was measured when it began, of the series of the same labels", () => {
  const values = matrix(
    [{ __name__: "load", host: "b" }, [1, 2], "3"],
    [{ __name__: "load", host: "a" }, [1, 2], "7.5"],
  );
  const [own] = episodesOf(matrix([firing, [2]]), values, { step: MINUTE, end: 9 * MINUTE });
  expect(own?.value).toBe("7.5");
  const [none] = episodesOf(matrix([firing, [4]]), values, { step: MINUTE, end: 9 * MINUTE });
  expect(none?.value).toBeUndefined();
});

it("looks as often as rules are evaluated, unless that is too often", () => {
  expect(stepOf(24 * 60 * MINUTE, MINUTE)).toBe(MINUTE);
  expect(stepOf(30 * 24 * 60 * MINUTE, MINUTE)).toBe(9 * MINUTE);
  expect(stepOf(24 * 60 * MINUTE, 15_000) % 15_000).toBe(0);
});
