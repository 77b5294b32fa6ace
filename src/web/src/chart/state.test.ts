import { describe, expect, it } from "vitest";
import {
  hash,
  isolateSeries,
  readState,
  shownFlags,
  slug,
  toggleSeries,
  writeState,
} from "./state";

const keys = ["a", "b", "c"];
const unchanged = readState(new URLSearchParams(), "cpu");

describe("the reader's changes of a chart", () => {
  it("are read from the address as they were written", () => {
    const flags = {
      log: false,
      stacked: true,
      compare: "@1795000000000" as const,
      diff: true,
      heat: false,
      legend: true,
      full: true,
    };
    const state = { ...isolateSeries(unchanged, "b"), ...flags };
    const params = new URLSearchParams();
    for (const [name, value] of Object.entries(writeState(state, "cpu"))) {
      if (value !== undefined) params.set(name, value);
    }
    expect(readState(params, "cpu")).toEqual(state);
    expect(readState(params, "load")).toEqual(unchanged);
  });

  it("are empty when the address is invalid", () => {
    const params = new URLSearchParams("only.cpu=<b>.!&hide.cpu=&log.cpu=yes&full=x");
    expect(readState(params, "cpu")).toEqual(unchanged);
  });
});

describe("a series", () => {
  it("is shown alone after a click, and with all others after a second one", () => {
    const alone = isolateSeries(unchanged, "b");
    expect(shownFlags(alone, keys)).toEqual([false, true, false]);
    expect(shownFlags(isolateSeries(alone, "b"), keys)).toEqual([true, true, true]);
    expect(shownFlags(isolateSeries(alone, "c"), keys)).toEqual([false, false, true]);
  });

  it("is hidden by a click with Shift, and shown again by a second one", () => {
    const hidden = toggleSeries(unchanged, "b", keys);
    expect(shownFlags(hidden, keys)).toEqual([true, false, true]);
    expect(shownFlags(toggleSeries(hidden, "b", keys), keys)).toEqual([true, true, true]);
  });

  it("that appears later is shown although others are hidden", () => {
    expect(shownFlags(toggleSeries(unchanged, "b", keys), [...keys, "d"])).toEqual([
      true,
      false,
      true,
      true,
    ]);
  });

  it("that is the last one shown restores all others when it is hidden", () => {
    const twoHidden = toggleSeries(toggleSeries(unchanged, "a", keys), "b", keys);
    expect(shownFlags(toggleSeries(twoHidden, "c", keys), keys)).toEqual([true, true, true]);
  });

  it("that disappears leaves all others shown", () => {
    expect(shownFlags(isolateSeries(unchanged, "gone"), keys)).toEqual([true, true, true]);
  });
});

it("names charts by the letters and digits of their titles", () => {
  expect(slug("Network errors & drops <b>")).toBe("network-errors-drops-b");
  expect(slug("***")).toBe("chart");
  expect(hash("a")).toMatch(/^[0-9a-z]{1,7}$/);
});
