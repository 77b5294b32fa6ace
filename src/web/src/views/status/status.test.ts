import { describe, expect, it } from "vitest";
import { ratesOf, answersToKeep, type IngestCounters } from "./rates";
import { levelOf, nearestFirst, sendersBy, shareOf } from "./shares";

const countersAt = (now: number, accepted: number, started = 0): IngestCounters => ({
  now,
  started,
  protocols: [{ protocol: "native", accepted, duplicate: 0, refused: 0 }],
});

describe("rates", () => {
  it("are the samples accepted between two answers, by the daemon's clock", () => {
    expect(ratesOf(countersAt(1000, 100), countersAt(3000, 300))).toEqual(
      new Map([["native", 100]]),
    );
  });

  it("are unknown from one answer, from equal answers, or across a restart", () => {
    expect(ratesOf(undefined, countersAt(1000, 1))).toBe(null);
    expect(ratesOf(countersAt(1000, 1), countersAt(1000, 1))).toBe(null);
    expect(ratesOf(countersAt(1000, 900), countersAt(2000, 10, 1500))).toBe(null);
  });

  it("count a new protocol from zero", () => {
    const before = { ...countersAt(0, 0), protocols: [] };
    expect(ratesOf(before, countersAt(1000, 7))).toEqual(new Map([["native", 7]]));
  });
});

describe("answers to compare with", () => {
  it("reach back half a minute, the oldest first", () => {
    let before: IngestCounters[] = [];
    for (const now of [0, 10_000, 20_000, 35_000])
      before = answersToKeep(before, countersAt(now, 1));
    expect(before.map(({ now }) => now)).toEqual([10_000, 20_000, 35_000]);
  });

  it("contain no answer from before a restart, and no answer twice", () => {
    const before = [countersAt(1000, 900, 0), countersAt(3000, 5, 2000)];
    expect(answersToKeep(before, countersAt(3000, 5, 2000))).toEqual([countersAt(3000, 5, 2000)]);
  });
});

describe("limits", () => {
  it("are sorted by the share that is reached", () => {
    const limit = (name: string, used: number, max: number) => ({ name, used, max, setting: "" });
    const limits = [limit("far", 1, 100), limit("near", 9, 10), limit("none", 5, 0)];
    expect(nearestFirst(limits).map(({ name }) => name)).toEqual(["near", "far", "none"]);
  });

  it("warn from four fifths on", () => {
    expect([0.79, 0.8, 0.95].map(levelOf)).toEqual(["", "warn", "bad"]);
    expect(shareOf(1, 0)).toBe(0);
  });
});

it("sorts senders by the chosen number", () => {
  const a = { agent: "a", series: 1, samples: 9, heard: 5 };
  const b = { agent: "b", series: 2, samples: 3, heard: 7 };
  expect(sendersBy([a, b], "series")).toEqual([b, a]);
  expect(sendersBy([b, a], "samples")).toEqual([a, b]);
  expect(sendersBy([b, a], "agent")).toEqual([a, b]);
});
