import { expect, it } from "vitest";
import { spanText, whenText } from "./times";

const at = Date.parse;
const now = at("2026-11-22T12:00:00Z");

it("writes a range within a day by its times", () => {
  const [start, end] = [at("2026-11-22T00:00:00Z"), at("2026-11-22T06:00:00Z")];
  expect(spanText("UTC", start, end, now)).toBe("22 Nov 00:00 – 06:00");
  expect(spanText("America/New_York", start, end, now)).toBe("21 Nov 19:00 – 22 Nov 01:00");
});

it("writes long ranges by their days", () => {
  const [start, end] = [at("2026-01-01T00:00:00Z"), at("2027-01-01T00:00:00Z")];
  expect(spanText("UTC", start, end, now)).toBe("1 Jan 2026 – 1 Jan 2027");
});

it("includes the year unless it is the current year", () => {
  expect(whenText("UTC", at("2025-12-31T23:30:00Z"), now)).toBe("31 Dec 2025 23:30");
  expect(whenText("Europe/Berlin", at("2025-12-31T23:30:00Z"), now)).toBe("1 Jan 00:30");
});
