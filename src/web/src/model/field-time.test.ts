import { expect, test } from "vitest";
import { fieldValue, instantOfValue } from "./field-time";

test("a field is written and read by the zone's clock", () => {
  const noon = Date.parse("2026-03-28T12:00:00Z");
  expect(fieldValue("Europe/Berlin", noon)).toBe("2026-03-28T13:00");
  expect(fieldValue("Asia/Kolkata", noon)).toBe("2026-03-28T17:30");
  for (const zone of ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York"]) {
    for (let hour = 0; hour < 72; hour++) {
      const instant = noon + hour * 3_600_000;
      expect(instantOfValue(zone, fieldValue(zone, instant)), `${zone} ${hour}`).toBe(instant);
    }
  }
});

test("an incomplete field means no time", () => {
  for (const text of ["", "2026-03-28", "soon"])
    expect(instantOfValue("UTC", text)).toBeUndefined();
});
