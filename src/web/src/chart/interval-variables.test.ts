import { expect, it } from "vitest";
import { fillIntervals } from "./interval-variables";

it("fills in the width of slots and the length of the window", () => {
  const fill = (text: string) => fillIntervals(text, 300_000, 86_400_000);
  expect(fill("rate(a[$__rate_interval])")).toBe("rate(a[600s])");
  expect(fill("increase(a[${__interval}]) / $__range_s")).toBe("increase(a[300s]) / 86400");
  expect(fill("avg_over_time(a[$__range])")).toBe("avg_over_time(a[86400s])");
  expect(fill("a * $__interval_ms")).toBe("a * 300000");
  expect(fill("a * $__rate_interval_ms")).toBe("a * 600000");
});

it("leaves other variables as they are", () => {
  expect(fillIntervals("$host $__other ${__proto__}", 1000, 1000)).toBe(
    "$host $__other ${__proto__}",
  );
});
