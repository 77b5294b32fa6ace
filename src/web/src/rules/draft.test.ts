import { expect, it } from "vitest";
import type { MetricQuery } from "../api/types";
import {
  comparisonText,
  expressionOf,
  draftFault,
  alertNameOf,
  ruleFile,
  type RuleDraft,
} from "./draft";

const query = (changes: Partial<MetricQuery> = {}): MetricQuery => ({
  kind: "metric",
  metric: "load",
  tags: "",
  ...changes,
});
const ruleDraft = (changes: Partial<RuleDraft> = {}): RuleDraft => ({
  name: "High",
  expression: "load",
  operator: ">",
  value: "5",
  lasting: "5m",
  severity: "warning",
  summary: 'load of "{{ $labels.host }}"',
  ...changes,
});

it("requests the drawn numbers", () => {
  const expressionFor = (
    query: MetricQuery,
    kind: "gauge" | "counter" | "delta",
    display?: "total",
  ) => expressionOf(query, { kind, display });
  expect(expressionFor(query(), "gauge")).toBe("load");
  expect(expressionFor(query({ tags: 'host=web1,mount="/a,b"' }), "gauge")).toBe(
    'load{host="web1",mount="/a,b"}',
  );
  expect(expressionFor(query(), "counter")).toBe("rate(load[5m])");
  expect(expressionFor(query(), "counter", "total")).toBe("increase(load[5m])");
  expect(expressionFor(query(), "delta")).toBe("increase(load[5m])");
  expect(expressionFor(query({ group_by: "host, dc" }), "counter")).toBe(
    "sum by (host, dc) (rate(load[5m]))",
  );
  expect(expressionFor(query({ group_by: "data.center" }), "gauge")).toBe(
    'avg by ("data.center") (load)',
  );
  expect(expressionFor(query({ merge: true }), "gauge")).toBe("avg(load)");
  expect(expressionFor(query({ metric: "a.b", tags: "x-y=1" }), "gauge")).toBe('{"a.b","x-y"="1"}');
  const histograms = (changes: Partial<MetricQuery>, display: "p99" | "p99.9" | "total") =>
    expressionOf(query({ metric: "wait", ...changes }), { kind: "histogram", display });
  expect(histograms({}, "p99")).toBe("histogram_quantile(0.99, increase(wait[5m]))");
  expect(histograms({ group_by: "dc" }, "p99.9")).toBe(
    "histogram_quantile(0.999, sum by (dc) (increase(wait[5m])))",
  );
  expect(histograms({ merge: true }, "total")).toBe("histogram_count(sum(increase(wait[5m])))");
  const promql = { kind: "promql" as const, expression: " sum(load) " };
  expect(expressionOf(promql, { kind: undefined, display: undefined })).toBe("sum(load)");
});

it("compares the whole expression", () => {
  expect(comparisonText(ruleDraft())).toBe("load > 5");
  expect(comparisonText(ruleDraft({ expression: "a and b", operator: "<=" }))).toBe(
    "(a and b) <= 5",
  );
  expect(comparisonText(ruleDraft({ expression: 'a{x="b or c"}' }))).toBe('a{x="b or c"} > 5');
});

it("writes a rule file", () => {
  expect(ruleFile(ruleDraft())).toBe(
    [
      "groups:",
      '- name: "High"',
      "  rules:",
      '  - alert: "High"',
      '    expr: "load > 5"',
      "    for: 5m",
      "    labels:",
      "      severity: warning",
      "    annotations:",
      '      summary: "load of \\"{{ $labels.host }}\\""',
      "",
    ].join("\n"),
  );
  expect(ruleFile(ruleDraft({ lasting: "", severity: "", summary: "" }))).not.toMatch(/for|labels/);
});

it("reports missing and invalid fields", () => {
  expect(draftFault(ruleDraft())).toBeUndefined();
  expect(draftFault(ruleDraft({ lasting: "1h30m" }))).toBeUndefined();
  for (const changes of [{ name: " " }, { value: "" }, { value: "x" }, { lasting: "soon" }]) {
    expect(draftFault(ruleDraft(changes)), JSON.stringify(changes)).toBeDefined();
  }
  expect(alertNameOf("Network received (eth0)")).toBe("NetworkReceivedEth0");
});

it("converts a threshold to the unit of the compared expression", () => {
  const bytes = { word: "bytes", perSecond: true };
  expect(comparisonText(ruleDraft({ value: "1e6" }))).toBe("load > 1e6");
  expect(comparisonText(ruleDraft({ value: "5GB" }))).toBe("load > 5000000000");
  expect(comparisonText(ruleDraft({ value: "10 MB/s", unit: bytes }))).toBe("load > 10000000");
  expect(draftFault(ruleDraft({ value: "90%", unit: bytes }))).toContain(
    "is in bytes, not percent",
  );
  expect(draftFault(ruleDraft({ value: "90%" }))).toContain("write 90 or 0.9");
  expect(ruleFile(ruleDraft({ value: "250ms" }))).toContain('expr: "load > 0.25"');
});
