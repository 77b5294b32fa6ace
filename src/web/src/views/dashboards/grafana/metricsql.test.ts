import { expect, it } from "vitest";
import { plainPromql } from "./metricsql";

it("adds the window that MetricsQL implies", () => {
  expect(plainPromql("increase(m)")).toBe("increase(m[$__interval])");
  expect(plainPromql('sum(rate(m{a="b)"})) by (x)')).toBe(
    'sum(rate(m{a="b)"}[$__interval])) by (x)',
  );
  expect(plainPromql("avg_over_time( {a='b'} )")).toBe("avg_over_time({a='b'}[$__interval])");
});

it("writes sums of several arguments, and labels to keep, in PromQL", () => {
  expect(plainPromql("sum(a, b)")).toBe("(sum(a) + sum(b))");
  expect(plainPromql("sum(rate(a), b) by (x) / 2")).toBe(
    "(sum(rate(a[$__interval])) by (x) + sum(b) by (x)) / 2",
  );
  expect(plainPromql('label_keep(up, "job", "host")')).toBe("max by (job, host) (up)");
  expect(plainPromql('label_del(up, "pod")')).toBe("max without (pod) (up)");
});

it("writes lengths in milliseconds as numbers, and moves offsets to selectors", () => {
  expect(plainPromql("m * 1h_ms / 5m_ms")).toBe("m * 3600000 / 300000");
  expect(plainPromql("rate(m[1h_ms])")).toBe("rate(m[1h])");
  expect(plainPromql("m1h_ms + x_5m_ms")).toBe("m1h_ms + x_5m_ms");
  expect(plainPromql("sum(increase(m)) offset 1d")).toBe("sum(increase(m[$__interval] offset 1d))");
});

it("leaves PromQL as it is", () => {
  for (const text of [
    'sum by (a) (rate(m{x="a,b(\\"",y=~"c"}[5m])) > 0',
    "rate(m[$__rate_interval])",
    'label_replace(up, "a", "$1", "b", "(.*)")',
    "quantile_over_time(0.9, m[5m])",
    "topk(5, a) or vector(0)",
    "increase((a+b)[5m:1m])",
    'x{a="increase(m)"}',
    "sum(",
    "",
  ])
    expect(plainPromql(text)).toBe(text);
});
