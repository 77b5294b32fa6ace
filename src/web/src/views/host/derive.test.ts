import { expect, it } from "vitest";
import type { ChartData, DrawnSeries } from "../../chart/data";
import { byOperation, percent, sharesOf } from "./derive";

function drawnSeries(metric: string, values: DrawnSeries["values"], tags = {}): DrawnSeries {
  const unit = { word: "seconds", perSecond: true };
  return {
    key: metric,
    metric,
    tags,
    kind: "counter",
    display: "avg_per_sec",
    unit,
    label: metric,
    values,
  };
}

function chartData(...series: DrawnSeries[]): ChartData {
  return {
    window: { start: 0, end: 1, resolution: "1m", zone: "UTC" },
    times: [0, 60_000, 120_000],
    series,
    resolution: "1m",
    isCoarse: false,
    incompleteFrom: undefined,
    notes: [],
    rest: [],
  };
}

it("computes shares of all cores, keeps gaps, and omits idle time", () => {
  const { series } = sharesOf([]).series(
    chartData(
      drawnSeries("system_cpu_user", [1, null, 0]),
      drawnSeries("system_cpu_idle", [3, null, 4]),
    ),
  );
  expect(series.map(({ label, values }) => [label, values])).toEqual([["user", [25, null, 0]]]);
});

it("divides time by operations, without a value when there were none", () => {
  const tags = { disk: "sda" };
  const { series } = byOperation.series(
    chartData(
      drawnSeries("d_latency_read", [0.5, 0, null], tags),
      drawnSeries("d_iops_read", [100, 0, 3], tags),
    ),
  );
  expect(series.map(({ label, values }) => [label, values])).toEqual([
    ["sda read", [0.005, null, null]],
  ]);
});

it("does not divide by the operations of another disk", () => {
  const readTime = drawnSeries("d_latency_read", [1, 1, 1], { disk: "a" });
  const operations = drawnSeries("d_iops_read", [1, 1, 1], { disk: "b" });
  expect(byOperation.series(chartData(readTime, operations)).series).toEqual([]);
});

it("converts seconds per second to percent", () => {
  expect(percent.series(chartData(drawnSeries("busy", [0.5, null, 0]))).series[0]?.values).toEqual([
    50,
    null,
    0,
  ]);
});

it("writes the derived numbers in PromQL for rules", () => {
  const expressionFor = (metric: string) => `rate(${metric}[5m])`;
  const cpu = sharesOf(["cpu_user", "cpu_idle"]);
  expect(cpu.expression("cpu_user", expressionFor)).toBe(
    "100 * rate(cpu_user[5m]) / (rate(cpu_user[5m]) + rate(cpu_idle[5m]))",
  );
  expect(cpu.expression("cpu_idle", expressionFor)).toBeUndefined();
  expect(percent.expression("busy", expressionFor)).toBe("100 * rate(busy[5m])");
  expect(byOperation.expression("disk_latency_read", expressionFor)).toBe(
    "rate(disk_latency_read[5m]) / rate(disk_iops_read[5m])",
  );
  expect(byOperation.expression("disk_iops_read", expressionFor)).toBeUndefined();
});
