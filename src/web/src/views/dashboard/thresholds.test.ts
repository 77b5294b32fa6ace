import { expect, it } from "vitest";
import { readThresholds, thresholdsText } from "./thresholds";

it("reads thresholds, and writes them as they are read", () => {
  const read = readThresholds(" good, 80 warn,90.5  bad ");
  expect(read).toEqual([
    { level: "good" },
    { from: 80, level: "warn" },
    { from: 90.5, level: "bad" },
  ]);
  expect(thresholdsText(read as [])).toBe("good, 80 warn, 90.5 bad");
  expect([readThresholds(""), thresholdsText()]).toEqual([[], ""]);
});

it("says what is wrong", () => {
  expect(readThresholds("80 ugly")).toContain("“80 ugly” is not a threshold");
  expect(readThresholds("x warn")).toContain("“x warn”");
  expect(readThresholds("90 bad, 80 warn")).toContain("must be larger");
  expect(readThresholds("90 bad, good")).toContain("must be larger");
  expect(readThresholds(Array.from({ length: 11 }, (_, k) => `${k} bad`).join())).toContain(
    "most 10",
  );
});
