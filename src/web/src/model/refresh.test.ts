import { expect, it } from "vitest";
import { REFRESH_CHOICES, refreshChoiceOf, refreshInterval } from "./refresh";
import { DAY, MINUTE } from "./zone";

it("is a sixth of a slot within bounds, unless chosen or paused", () => {
  expect([MINUTE, 5 * MINUTE, DAY].map((slot) => refreshInterval(undefined, slot))).toEqual([
    10_000, 50_000, 60_000,
  ]);
  expect(REFRESH_CHOICES.map((choice) => refreshInterval(choice, MINUTE))).toEqual([
    10_000,
    30_000,
    60_000,
    300_000,
    undefined,
  ]);
});

it("is chosen by the words of the address only", () => {
  expect(["30s", "off", "soon", "", null].map(refreshChoiceOf)).toEqual([
    "30s",
    "off",
    undefined,
    undefined,
    undefined,
  ]);
});
