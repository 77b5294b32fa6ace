import { expect, it } from "vitest";
import { firstWord, groupsOf, matching } from "./groups";

const gaugesNamed = (...metrics: string[]) =>
  metrics.map((metric) => ({ metric, tags: {}, kind: "gauge" as const, unit: "" }));

it("treats the text before the first separator as the first word", () => {
  const names = ["system_load_1m", "http.requests", "up", "_odd", "a:b", ""];
  expect(names.map(firstWord)).toEqual(["system", "http", "up", "_odd", "a", ""]);
});

it("counts the series of each metric", () => {
  expect(groupsOf(gaugesNamed("b_x", "a_y", "a_x", "a_y"))).toEqual([
    {
      word: "a",
      metrics: [
        { metric: "a_x", series: 1 },
        { metric: "a_y", series: 2 },
      ],
    },
    { word: "b", metrics: [{ metric: "b_x", series: 1 }] },
  ]);
});

it("finds names that contain every word, ignoring case", () => {
  const groups = groupsOf(gaugesNamed("system_disk_bytes", "system_net_bytes", "swap"));
  expect(matching(groups, "BYTES net").flatMap(({ metrics }) => metrics)).toEqual([
    { metric: "system_net_bytes", series: 1 },
  ]);
  expect(matching(groups, "  ")).toEqual(groups);
  expect(matching(groups, "none")).toEqual([]);
});
