import { expect, it } from "vitest";
import type { ChartData, DrawnSeries } from "./data";
import { largestText } from "./slot-text";

const line = (label: string, values: (number | null)[]) =>
  ({ label, values, unit: { word: "percent", perSecond: false } }) as unknown as DrawnSeries;

const data = {
  times: [0, 60, 120],
  series: [
    line("mongod", [20, 20, 20]),
    line("java", [null, 85, 0]),
    line("nginx", [1, 2, 3]),
    line("redis", [0.5, 1, 4]),
  ],
} as unknown as ChartData;

it("lists the three largest values of the slot at a time, and none of zero", () => {
  // A value and its unit are on one line.
  const text = (time: number) => largestText(data, time).replaceAll("\u00a0%", " %");
  expect(text(60)).toBe("java 85 %, mongod 20 %, nginx 2 %");
  expect(text(119)).toBe("java 85 %, mongod 20 %, nginx 2 %");
  expect(text(120)).toBe("mongod 20 %, redis 4 %, nginx 3 %");
  expect(text(-1)).toBe("");
  expect(largestText(data, 60)).not.toContain(" %");
});
