import { describe, expect, it } from "vitest";
import { MOMENT_EXAMPLE, momentFieldText, parseMoment } from "./moment";
import { lengthOf, monthsOf, parseRange, rangeLabel, rangesWithin } from "./range";
import { DAY, HOUR, MINUTE } from "./zone";

describe("a range", () => {
  it.each([
    ["6h", "6h", "6 hr", 6 * HOUR],
    [" 14 Days ", "14d", "14 days", 14 * DAY],
    ["90min", "90m", "90 min", 90 * MINUTE],
    ["1 week", "1w", "1 wk", 7 * DAY],
    ["03mo", "3mo", "3 mos", 91.2 * DAY],
  ])("is read from %j as %s", (text, range, label, length) => {
    expect(parseRange(text)).toBe(range);
    expect(rangeLabel(range)).toBe(label);
    expect(lengthOf(range)).toBe(length);
  });

  it("is not any other text", () => {
    for (const text of ["", "6", "h", "0d", "-1h", "1.5h", "6 parsecs", "123456h"])
      expect(parseRange(text)).toBeUndefined();
  });

  it("of months and years counts months", () => {
    expect(["2mo", "5y", "60d"].map(monthsOf)).toEqual([2, 60, 0]);
  });

  it("is offered as far as the retention holds", () => {
    const year = 366 * DAY;
    expect(rangesWithin("14d", "48h", year)).toEqual(["1w", "2w"]);
    expect(rangesWithin("48h", "48h", year)).toEqual([]);
    expect(rangesWithin("9w", "2mo", year)).toEqual(["9w"]);
    expect(rangesWithin("400d", "48h", 17 * DAY)).toEqual(["1w", "2w"]);
  });
});

describe("a moment", () => {
  const zone = "Europe/Berlin";
  const now = Date.parse("2026-11-22T04:32:10Z");
  it.each([
    [MOMENT_EXAMPLE, "2026-11-20T13:30:00Z"],
    ["2026-11-20T14:30:05", "2026-11-20T13:30:05Z"],
    ["2026-11-20", "2026-11-19T23:00:00Z"],
    ["2026-7-1 8:05", "2026-07-01T06:05:00Z"],
    ["05:10", "2026-11-22T04:10:00Z"],
    ["2026-11-20T14:30:00Z", "2026-11-20T14:30:00Z"],
    ["2026-11-20T14:30:00-05:00", "2026-11-20T19:30:00Z"],
    ["1763640000", "2025-11-20T12:00:00Z"],
    ["1763640000000", "2025-11-20T12:00:00Z"],
    ["now", "2026-11-22T04:32:10Z"],
    ["-6h", "2026-11-21T22:32:10Z"],
    ["now-2d", "2026-11-20T04:32:10Z"],
  ])("is read from %j", (text, expected) => {
    expect(parseMoment(text, zone, now)).toBe(Date.parse(expected));
  });

  it("is not any other text", () => {
    for (const text of ["", "soon", "2026-02-30", "2026-13-01", "25:00", "12:60", "20.11.2026"])
      expect(parseMoment(text, zone, now), text).toBeUndefined();
  });

  it("is read as it is written", () => {
    const instant = Date.parse("2026-11-20T13:30:00Z");
    expect(parseMoment(momentFieldText(zone, instant), zone, now)).toBe(instant);
  });
});
