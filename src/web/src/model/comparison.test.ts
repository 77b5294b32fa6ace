import { expect, it } from "vitest";
import { comparisonOf, comparesSeries, withThreshold } from "./comparison";

const load = { metric: "load", tags: { host: "web1" }, kind: "gauge" as const, display: "avg" };
const bytes = { ...load, metric: "bytes", kind: "counter" as const, display: "avg_per_sec" };

it("reads the expression that is compared with a number", () => {
  expect(comparisonOf("load > 5")).toMatchObject({ metric: "load", operator: ">", value: 5 });
  expect(comparisonOf(' load{host="web1"} <= -1.5e3 ')).toMatchObject({
    matchers: [{ name: "host", operator: "=", value: "web1" }],
    operator: "<=",
    value: -1500,
  });
  expect(comparisonOf("rate(bytes[5m]) > 1e6")).toMatchObject({ metric: "bytes", isRate: true });
  expect(comparisonOf("100 * a / b >= 90")).toMatchObject({
    normalized: "100*a/b",
    metric: undefined,
    value: 90,
  });
  expect(comparisonOf('sum(a and b{x="or"}) by (or) > 5')).toMatchObject({ value: 5 });
  for (const text of [
    "load",
    "load > b",
    "a and b",
    "> 5",
    "",
    "a > 1 and b > 2",
    "a unless(b)>2",
  ]) {
    expect(comparisonOf(text), text).toBeUndefined();
  }
});

it("applies to the series that its matchers select", () => {
  for (const [expression, expected] of [
    ["load > 5", true],
    ['load{host="web1"} > 5', true],
    ['load{host="web2"} > 5', false],
    ['load{host=~"web.*",role=""} > 5', true],
    ['load{host!~"web.*"} > 5', false],
    ['load{host!="db, \\"1\\""} > 5', true],
    ['load{host=~"("} > 5', false],
    ["rate(load[5m]) > 5", false],
    ["bytes > 5", false],
    ["sum(load) > 5", false],
  ] as const) {
    const comparison = comparisonOf(expression);
    expect(comparison && comparesSeries(comparison, load), expression).toBe(expected);
  }
  const rateComparison = comparisonOf("rate(bytes[5m]) > 5");
  expect(rateComparison && comparesSeries(rateComparison, bytes)).toBe(true);
  expect(rateComparison && comparesSeries(rateComparison, { ...bytes, display: "total" })).toBe(
    false,
  );
  const plainComparison = comparisonOf("bytes > 5");
  expect(plainComparison && comparesSeries(plainComparison, bytes)).toBe(false);
});

it("writes a comparison with another threshold", () => {
  const comparison = comparisonOf('avg by (host) (load{dc="a > b"}) >= 8');
  expect(comparison && withThreshold(comparison, 9.5)).toBe(
    'avg by (host) (load{dc="a > b"}) >= 9.5',
  );
  const commented = comparisonOf("load # of a minute\n> 8");
  expect(commented && withThreshold(commented, 9)).toBe("load # of a minute\n> 9");
});
