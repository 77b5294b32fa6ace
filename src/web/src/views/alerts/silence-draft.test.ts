import { expect, it } from "vitest";
import type { Silence } from "../../api/types";
import { draftOf, silenceFault, silenceOf, type SilenceDraft } from "./silence-draft";

const NOW = Date.parse("2026-11-20T10:00:00Z");
const labels = { host: "web1", alertname: "High" };
const completeDraft = (changes: Partial<SilenceDraft> = {}) => ({
  ...draftOf({ labels }, "Europe/Berlin", NOW),
  comment: "disk",
  ...changes,
});

it("covers one alert at first, for two hours by the reader's clock", () => {
  const draft = completeDraft();
  expect(silenceFault(draft, "ann")).toBeUndefined();
  expect(silenceOf(draft, " ann ")).toEqual({
    matchers: [
      { name: "alertname", value: "High", isRegex: false, isEqual: true },
      { name: "host", value: "web1", isRegex: false, isEqual: true },
    ],
    startsAt: "2026-11-20T10:00:00.000Z",
    endsAt: "2026-11-20T12:00:00.000Z",
    createdBy: "ann",
    comment: "disk",
    recurring: null,
  });
});

it("names a value that is too long for the daemon", () => {
  const chosen = Array.from({ length: 500 }, (_, k) => ({
    alert: { labels: { alertname: "High", host: `host-${k}` } },
  }));
  const draft = { ...draftOf({ chosen }, "UTC", NOW), comment: "disk" };
  expect(silenceFault(draft, "ann")).toBe(
    "The value of host has more than 4,096 bytes: select fewer alerts.",
  );
  const few = { ...draftOf({ chosen: chosen.slice(0, 50) }, "UTC", NOW), comment: "disk" };
  expect(silenceFault(few, "ann")).toBeUndefined();
});

it("recurs on the chosen weekdays", () => {
  const draft = completeDraft({
    isRecurring: true,
    weekdays: ["monday"],
    from: "22:00",
    until: "01:00",
  });
  expect(silenceOf(draft, "ann").recurring).toEqual({
    weekdays: ["monday"],
    from: "22:00",
    until: "01:00",
    zone: "Europe/Berlin",
  });
});

it("shows the bounds of a recurring silence, which may have no end", () => {
  const silence: Silence = {
    id: "s2",
    status: { state: "pending" },
    matchers: [{ name: "host", value: "a", isRegex: false, isEqual: true }],
    startsAt: "2026-11-22T01:00:00Z",
    endsAt: "2026-11-22T03:00:00Z",
    recursFrom: "2026-11-01T00:00:00Z",
    recursUntil: "9999-12-31T00:00:00Z",
    updatedAt: "",
    createdBy: "ann",
    comment: "weekly",
    recurring: { weekdays: ["sunday"], from: "01:00", until: "03:00", zone: "Asia/Tokyo" },
  };
  const draft = draftOf({ silence }, "UTC", NOW);
  expect(draft).toMatchObject({ start: "2026-11-01T00:00", end: "", windowZone: "Asia/Tokyo" });
  expect(silenceOf(draft, "ann")).not.toHaveProperty("endsAt");
  expect(silenceOf(draft, "ann").recurring).toEqual(silence.recurring);
});

it("reports missing and invalid fields", () => {
  const matchers = (name: string, value: string) => [
    { name, value, isRegex: false, isEqual: true },
  ];
  for (const [changes, problem] of [
    [{ matchers: matchers(" ", "x") }, "Enter a label"],
    [{ matchers: matchers("host", "") }, "a value for each label"],
    [{ end: "" }, "start and end."],
    [{ end: "2026-11-20T10:00" }, "end is before the start"],
    [{ comment: " " }, "Enter a comment"],
    [{ isRecurring: true, weekdays: [] }, "Choose a weekday"],
    [{ isRecurring: true, from: "" }, "start and end time"],
    [{ isRecurring: true, windowZone: "Mars" }, "time zone"],
  ] as const) {
    expect(silenceFault(completeDraft(changes as Partial<SilenceDraft>), "ann"), problem).toContain(
      problem,
    );
  }
  expect(silenceFault(completeDraft(), " ")).toBe("Enter an author.");
});

it("edits an active silence, and recreates an expired one", () => {
  const silence: Silence = {
    id: "s1",
    status: { state: "active" },
    matchers: [{ name: "host", value: "web.*", isRegex: true, isEqual: true }],
    startsAt: "2026-11-20T09:00:37.250Z",
    endsAt: "2026-11-20T15:00:59.999Z",
    updatedAt: "",
    createdBy: "ann",
    comment: "disk",
  };
  const changed = silenceOf(draftOf({ silence }, "UTC", NOW), "bob");
  // Times that the reader did not edit keep their milliseconds.
  const { startsAt, endsAt } = silence;
  expect(changed).toMatchObject({ id: "s1", startsAt, endsAt });
  const shortened = { ...draftOf({ silence }, "UTC", NOW), end: "2026-11-20T14:00" };
  expect(silenceOf(shortened, "bob")).toMatchObject({
    startsAt,
    endsAt: "2026-11-20T14:00:00.000Z",
  });
  const expired: Silence = { ...silence, status: { state: "expired" } };
  const recreated = silenceOf(draftOf({ silence: expired }, "UTC", NOW), "bob");
  expect(recreated.id).toBeUndefined();
  expect(recreated.startsAt).toBe("2026-11-20T10:00:00.000Z");
  expect(recreated.matchers).toEqual(silence.matchers);
});
