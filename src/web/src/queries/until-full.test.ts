import { expect, it } from "vitest";
import type { Tags } from "../api/types";
import { fileSystemsQuery, matchersOf, resourcesQuery, untilFullOf } from "./until-full";

const sample = (metric: Tags, seconds: string) => ({
  metric,
  value: [0, seconds] as [number, string],
});
const vector = (...result: ReturnType<typeof sample>[]) => ({
  resultType: "vector" as const,
  result,
});

it("merges the quantiles of a resource, and sorts by the median", () => {
  const root = { host: "a", mount: "/" };
  const answer = vector(
    sample({ ...root, quantile: "0.1" }, "100"),
    sample({ host: "a", quantile: "0.1" }, "10"),
    sample({ ...root, quantile: "0.5" }, "200"),
    sample({ host: "a", quantile: "0.5" }, "20"),
    sample({ ...root, quantile: "0.9" }, "300"),
  );
  expect(untilFullOf(answer)).toEqual([
    { host: "a", mount: undefined, early: 10_000, median: 20_000 },
    { host: "a", mount: "/", early: 100_000, median: 200_000, late: 300_000 },
  ]);
});

it("leaves out a resource without a median: its trend is too uncertain", () => {
  expect(untilFullOf(vector(sample({ host: "a", mount: "/", quantile: "0.1" }, "1")))).toEqual([]);
});

it("keeps file systems apart that differ in another tag only", () => {
  const root = { host: "a", mount: "/", quantile: "0.5" };
  const answer = vector(sample({ ...root, env: "x" }, "2"), sample({ ...root, env: "y" }, "1"));
  expect(untilFullOf(answer).map(({ median }) => median)).toEqual([1000, 2000]);
});

it("restricts each selector to the host, whose name may have quotes", () => {
  const matcher = matchersOf(new Map([["host", 'a"b']]));
  expect(matcher).toBe('{host="a\\"b"}');
  const selectors = resourcesQuery(matcher).match(/(disk|system)_[a-z_]+/g) ?? [];
  expect(resourcesQuery(matcher).split(matcher)).toHaveLength(selectors.length + 1);
  expect(fileSystemsQuery("")).not.toContain("{");
});
