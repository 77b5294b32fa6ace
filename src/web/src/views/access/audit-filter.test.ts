import { expect, it } from "vitest";
import { DAY, HOUR } from "../../model/zone";
import { paramsOf, type AuditFilter } from "./audit-filter";

const NOW = Date.UTC(2026, 10, 26, 12);
const ALL: AuditFilter = { who: "", range: "", from: "", until: "" };
const params = (changes: Partial<AuditFilter>) => paramsOf({ ...ALL, ...changes }, "UTC", NOW);

it("asks for the chosen name and time only", () => {
  expect(params({})).toEqual({});
  expect(params({ who: " ann " })).toEqual({ who: "ann" });
  expect(params({ range: "1h" })).toEqual({ since: NOW - HOUR });
  expect(params({ range: "7d", from: "2026-11-26T11:00" })).toEqual({ since: NOW - 7 * DAY });
  expect(params({ range: "nonsense" })).toEqual({});
});

it("asks for one or two bounds of a time range", () => {
  const between = (changes: Partial<AuditFilter>) => params({ range: "between", ...changes });
  expect(between({})).toEqual({});
  expect(between({ from: "2026-11-26T11:00" })).toEqual({ since: NOW - HOUR });
  expect(between({ from: "2026-11-26T11:00", until: "2026-11-26T12:00" })).toEqual({
    since: NOW - HOUR,
    until: NOW,
  });
});
