import { describe, expect, it } from "vitest";
import { rangeLabel } from "./range";
import {
  RESOLUTIONS,
  complaintAbout,
  withPan,
  readChoice,
  slotStarts,
  withWiderWindow,
  windowOf,
  withRange,
  withResolution,
  writeChoice,
  withZoom,
  type Choice,
} from "./timeframe";
import { DAY, HOUR, MINUTE } from "./zone";

const zone = "Europe/Berlin";
const choiceOfSearch = (search: string) => readChoice(new URLSearchParams(search), { zone });
const now = Date.parse("2026-11-22T04:32:10Z");

describe("resolutions and ranges", () => {
  it("offer fixed ranges for each resolution", () => {
    const table = RESOLUTIONS.map(({ label, ranges }) => [label, ranges.map(rangeLabel)]);
    expect(table).toEqual([
      ["1 min", ["1 hr", "6 hr", "12 hr", "24 hr", "48 hr"]],
      ["5 min", ["6 hr", "12 hr", "24 hr", "48 hr", "1 wk", "2 wks"]],
      ["1 hr", ["1 day", "1 wk", "2 wks", "1 mo", "2 mos"]],
      ["1 day", ["1 mo", "2 mos", "3 mos", "6 mos", "1 yr", "2 yrs", "5 yrs"]],
    ]);
  });

  it("keep a range that the new resolution offers, or else choose the nearest", () => {
    expect(withResolution(choiceOfSearch("resolution=1m&range=12h"), "5m").range).toBe("12h");
    expect(withResolution(choiceOfSearch("resolution=1m&range=1h"), "5m").range).toBe("6h");
    expect(withResolution(choiceOfSearch("resolution=5m&range=2w"), "1m").range).toBe("48h");
    expect(withResolution(choiceOfSearch("resolution=1m&range=24h"), "1h").range).toBe("1d");
    expect(withResolution(choiceOfSearch("resolution=1d&range=5y"), "1h").range).toBe("2mo");
  });

  it("keep a typed range that fits the new resolution", () => {
    expect(withResolution(choiceOfSearch("resolution=1m&range=3h"), "5m").range).toBe("3h");
    expect(withResolution(choiceOfSearch("resolution=1m&range=3h"), "1d").range).toBe("1mo");
  });

  it("choose slots in which a range is readable", () => {
    const choice = choiceOfSearch("resolution=1m&range=6h");
    expect(withRange(choice, "2w")).toMatchObject({ resolution: "1m", range: "2w" });
    expect(withRange(choice, "2mo")).toMatchObject({ resolution: "5m", range: "2mo" });
    expect(withRange(choice, "5y")).toMatchObject({ resolution: "1d", range: "5y" });
    const days = choiceOfSearch("resolution=1d");
    expect(withRange(days, "6h")).toMatchObject({ resolution: "1h", range: "6h" });
    expect(withRange(days, "1h")).toMatchObject({ resolution: "5m", range: "1h" });
  });

  it.each([
    ["range=14d", "5m", "2w"],
    ["range=1w", "5m", "1w"],
    ["range=168h", "5m", "1w"],
    ["range=30m", "1m", "30m"],
    ["range=10d", "5m", "10d"],
    ["range=45d", "1h", "45d"],
    ["range=24h", "1m", "24h"],
    ["resolution=1h&range=14d", "1h", "2w"],
    ["resolution=1m&range=14d", "1m", "14d"],
  ])("of the address %s are slots of %s over %s", (search, slot, range) => {
    const choice = choiceOfSearch(search);
    expect(choice).toMatchObject({ resolution: slot, range });
    expect(complaintAbout(new URLSearchParams(search), choice)).toBeUndefined();
  });

  it.each([
    ["range=9y", "1d", "5y", "The range “9y” is longer than 5 years. 5 yrs by 1 day is shown."],
    ["range=nonsense", "1m", "1h", "The range “nonsense” is not a length such as 6h, 14d or 3mo."],
    ["range=0d", "1m", "1h", "The range “0d” is not a length"],
    ["resolution=2m", "1m", "1h", "The resolution “2m” is not 1m, 5m, 1h or 1d."],
    ["resolution=1m&range=5y", "1d", "5y", "5 yrs has too many slots of 1 min."],
    ["resolution=1d&range=6h", "1h", "6h", "6 hr has too few slots of 1 day. 6 hr by 1 hr is"],
    ["start=yesterday&end=now", "1m", "1h", "start and end of the address are not a range"],
  ])("say why the address %s shows slots of %s over %s", (search, slot, range, complaint) => {
    const choice = choiceOfSearch(search);
    expect(choice).toMatchObject({ resolution: slot, range });
    expect(complaintAbout(new URLSearchParams(search), choice)).toContain(complaint);
  });
});

describe("the address", () => {
  it("is read as it was written", () => {
    const choices: Choice[] = [
      { ...choiceOfSearch(""), resolution: "5m", range: "1w", display: "total" },
      { ...choiceOfSearch(""), fixed: { start: 60_000, end: 120_000 }, zone: "America/St_Johns" },
    ];
    for (const choice of choices) {
      const params = new URLSearchParams();
      for (const [name, value] of Object.entries(writeChoice(choice, { zone }))) {
        if (value !== undefined) params.set(name, value);
      }
      expect(readChoice(params, { zone })).toEqual(choice);
    }
  });

  it("omits defaults", () => {
    expect(
      Object.values(writeChoice(choiceOfSearch(""), { zone })).every((v) => v === undefined),
    ).toBe(true);
  });

  it("is ignored where it is invalid", () => {
    const invalidChoice = choiceOfSearch(
      "resolution=3m&range=-1&start=x&end=9&tz=Mars/Base&display=sum",
    );
    expect(invalidChoice).toEqual(choiceOfSearch(""));
    expect(choiceOfSearch("start=200&end=100").fixed).toBeUndefined();
  });

  it("accepts dates as well as milliseconds", () => {
    const { fixed } = choiceOfSearch("start=2026-03-29T00:00:00Z&end=1774746000000");
    expect(fixed).toEqual({ start: Date.parse("2026-03-29T00:00:00Z"), end: 1774746000000 });
  });
});

describe("a window", () => {
  it("that follows the clock ends with the current slot", () => {
    const { start, end } = windowOf(choiceOfSearch("range=1h"), now);
    expect(new Date(end).toISOString()).toBe("2026-11-22T04:33:00.000Z");
    expect(end - start).toBe(HOUR);
  });

  it("of days begins and ends at the zone's midnight", () => {
    const window = windowOf(choiceOfSearch("resolution=1d&range=1mo"), now);
    expect(new Date(window.start).toISOString()).toBe("2026-10-22T22:00:00.000Z");
    expect(new Date(window.end).toISOString()).toBe("2026-11-22T23:00:00.000Z");
    const lengths = slotStarts(window).map(
      (at, k, all) => ((all[k + 1] ?? window.end) - at) / HOUR,
    );
    expect(lengths.filter((hours) => hours === 25)).toHaveLength(1);
    expect(lengths.filter((hours) => hours === 24)).toHaveLength(30);
  });

  it.each([
    ["Europe/Berlin", "2026-03-29", 23],
    ["Europe/Berlin", "2026-10-25", 25],
    ["America/St_Johns", "2026-03-08", 23],
    ["America/St_Johns", "2026-11-01", 25],
    ["Australia/Lord_Howe", "2026-10-04", 23.5],
    ["Australia/Lord_Howe", "2026-04-05", 24.5],
  ])("in %s on %s has a day of %d hours", (zoneName, date, hours) => {
    const noon = Date.parse(`${date}T12:00:00Z`);
    const fixed = { start: noon - 3 * DAY, end: noon + 3 * DAY };
    const choice: Choice = { ...choiceOfSearch("resolution=1d"), zone: zoneName, fixed };
    const window = windowOf(choice, now);
    const lengths = slotStarts(window).map(
      (at, k, all) => ((all[k + 1] ?? window.end) - at) / HOUR,
    );
    expect(lengths.filter((length) => length !== 24)).toEqual([hours]);
  });
});

describe("zoom", () => {
  it("shows whole slots of the chosen range", () => {
    const start = Date.parse("2026-11-22T01:25:20Z");
    const { fixed } = withZoom(choiceOfSearch("range=6h"), start, start + 90 * MINUTE);
    expect(new Date(fixed?.start ?? 0).toISOString()).toBe("2026-11-22T01:25:00.000Z");
    expect(new Date(fixed?.end ?? 0).toISOString()).toBe("2026-11-22T02:56:00.000Z");
  });

  it("switches to finer slots when few would remain", () => {
    const yearByDays = choiceOfSearch("resolution=1d&range=1y");
    expect(withZoom(yearByDays, now - 60 * DAY, now).resolution).toBe("1d");
    expect(withZoom(yearByDays, now - 10 * DAY, now).resolution).toBe("1h");
    expect(withZoom(yearByDays, now - DAY, now).resolution).toBe("5m");
    expect(withZoom(yearByDays, now - HOUR, now).resolution).toBe("1m");
  });

  it("is the same from either side", () => {
    const choice = choiceOfSearch("");
    expect(withZoom(choice, now, now - HOUR)).toEqual(withZoom(choice, now - HOUR, now));
  });

  it("has a minimum length", () => {
    const { fixed } = withZoom(choiceOfSearch(""), now, now + 1);
    expect((fixed?.end ?? 0) - (fixed?.start ?? 0)).toBeGreaterThanOrEqual(2 * MINUTE);
  });

  it("out switches to coarser slots when there would be too many", () => {
    const choice = choiceOfSearch("resolution=1m&range=48h");
    const widened = withWiderWindow(choice, windowOf(choice, now), 4, now);
    expect(widened.resolution).toBe("5m");
    expect(widened.fixed?.end).toBe(Date.parse("2026-11-22T04:35:00Z"));
  });
});

describe("pan", () => {
  const choice = choiceOfSearch("range=1h");
  const shownWindow = windowOf(choice, now);

  it("keeps the number of slots", () => {
    const { fixed } = withPan(choice, shownWindow, -0.333, now);
    expect((fixed?.end ?? 0) - (fixed?.start ?? 0)).toBe(HOUR);
    expect(shownWindow.end - (fixed?.end ?? 0)).toBe(20 * MINUTE);
  });

  it("ends at the present", () => {
    expect(withPan(choice, shownWindow, 0.5, now)).toBe(choice);
    const earlier = withPan(choice, shownWindow, -0.25, now);
    const later = withPan(earlier, windowOf(earlier, now), 2, now);
    expect(later.fixed?.end).toBe(shownWindow.end);
  });
});
