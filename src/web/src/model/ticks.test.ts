import { describe, expect, it } from "vitest";
import { timeTicks } from "./ticks";
import { HOUR, clockAt, instantOf, isoIn, startOfDay } from "./zone";

const tickLabels = (zone: string, from: string, to: string, most: number) =>
  timeTicks(zone, Date.parse(from), Date.parse(to), most).map(({ text }) => text);

describe("ticks of hours", () => {
  it("omit the hour that is skipped in spring", () => {
    expect(tickLabels("Europe/Berlin", "2026-03-28T23:00Z", "2026-03-29T04:00Z", 8)).toEqual([
      "00:00\n29 Mar",
      "01:00",
      "03:00\nCEST",
      "04:00",
      "05:00",
      "06:00",
    ]);
  });

  it("appear twice in the hour that is repeated", () => {
    expect(tickLabels("Europe/Berlin", "2026-10-24T23:00Z", "2026-10-25T03:00Z", 6)).toEqual([
      "01:00\n25 Oct",
      "02:00",
      "02:00\nCET",
      "03:00",
      "04:00",
    ]);
  });

  it("are at whole hours of a zone with a half-hour offset", () => {
    const ticks = timeTicks("America/St_Johns", 0, 12 * HOUR, 12);
    expect(ticks.every(({ at }) => clockAt("America/St_Johns", at).minute === 0)).toBe(true);
    expect(ticks.every(({ at }) => at % HOUR === HOUR / 2)).toBe(true);
  });

  it("stay at whole hours when clocks are set back by half an hour", () => {
    const zone = "Australia/Lord_Howe";
    const start = Date.parse("2026-04-04T13:00Z");
    const ticks = timeTicks(zone, start, start + 6 * HOUR, 8);
    expect(ticks.map(({ at }) => clockAt(zone, at).minute)).toEqual(ticks.map(() => 0));
    const distances = ticks.slice(1).map(({ at }, k) => (at - (ticks[k]?.at ?? 0)) / HOUR);
    expect(new Set(distances)).toEqual(new Set([1, 1.5]));
  });
});

describe("ticks of days", () => {
  it.each([
    ["Europe/Berlin", "2026-03-25T00:00Z"],
    ["Europe/Berlin", "2026-10-20T00:00Z"],
    ["America/St_Johns", "2026-10-28T00:00Z"],
    ["Australia/Lord_Howe", "2026-10-01T00:00Z"],
  ])("are at midnight in %s after %s", (zone, from) => {
    const start = Date.parse(from);
    const ticks = timeTicks(zone, start, start + 8 * 24 * HOUR, 9);
    expect(ticks).toHaveLength(8);
    for (const { at } of ticks) expect(at).toBe(startOfDay(zone, at));
  });

  it("of weeks are on Mondays", () => {
    const ticks = timeTicks("Europe/Berlin", Date.parse("2026-10-01"), Date.parse("2026-11-20"), 8);
    const days = ticks.map(({ at }) => new Date(at + 12 * HOUR).getUTCDay());
    expect(days).toEqual(ticks.map(() => 1));
  });

  it("of months and years are on the first day", () => {
    expect(tickLabels("UTC", "2025-11-20T00:00Z", "2026-05-02T00:00Z", 8)).toEqual([
      "Dec\n2025",
      "Jan\n2026",
      "Feb",
      "Mar",
      "Apr",
      "May",
    ]);
    expect(tickLabels("UTC", "2021-06-01T00:00Z", "2026-06-01T00:00Z", 6)).toEqual([
      "2022",
      "2023",
      "2024",
      "2025",
      "2026",
    ]);
  });
});

describe("clocks", () => {
  it("that show a time twice use the first instant", () => {
    expect(isoIn("Europe/Berlin", instantOf("Europe/Berlin", 2026, 10, 25, 2, 30))).toBe(
      "2026-10-25T02:30:00+02:00",
    );
  });

  it("that skip a time move it forward by the change", () => {
    expect(isoIn("Europe/Berlin", instantOf("Europe/Berlin", 2026, 3, 29, 2, 30))).toBe(
      "2026-03-29T03:30:00+02:00",
    );
  });

  it("keep the time of day in another month", () => {
    for (const zone of [
      "Europe/Berlin",
      "America/St_Johns",
      "Australia/Lord_Howe",
      "Asia/Kathmandu",
    ]) {
      for (
        let at = Date.parse("2026-01-01T00:00Z");
        at < Date.parse("2027-01-01");
        at += 5 * HOUR
      ) {
        const { year, month, day, hour, minute } = clockAt(zone, at);
        const instant = instantOf(zone, year, month, day, hour, minute);
        // The first of two, when the clock shows it twice.
        expect(clockAt(zone, instant)).toEqual(clockAt(zone, at));
        expect(instant).toBeLessThanOrEqual(at);
      }
    }
  });
});
