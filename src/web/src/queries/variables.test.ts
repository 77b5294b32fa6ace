import { describe, expect, test } from "vitest";
import type { PanelQuery } from "../api/types";
import { expandQueries, chosenOf, expandTitle } from "./variables";

const metricQuery = (tags: string, more = {}): PanelQuery => ({
  kind: "metric",
  metric: "cpu",
  tags,
  ...more,
});
const promqlQuery = (expression: string): PanelQuery => ({ kind: "promql", expression });

describe("a metric's query", () => {
  test("requests the chosen value", () => {
    const tags = "host=$host,core=${core}";
    expect(expandQueries([metricQuery(tags)], { host: ["a$1"], core: ["0"] })).toEqual([
      metricQuery("host=a$1,core=0"),
    ]);
  });

  test("requests a value with a comma as one value", () => {
    expect(expandQueries([metricQuery("mount=$mount,core=0")], { mount: ["/a,b"] })).toEqual([
      metricQuery('mount="/a,b",core=0'),
    ]);
  });

  test("requests any value when all are chosen", () => {
    expect(expandQueries([metricQuery("host=$host,core=0")], { host: [] })).toEqual([
      metricQuery("core=0"),
    ]);
  });

  test("becomes one query for each of several values, which stay separate when merged", () => {
    const query = metricQuery("host=$host", { merge: true });
    expect(expandQueries([query], { host: ["a", "b"] })).toEqual([
      metricQuery("host=a", { merge: true, group_by: "host" }),
      metricQuery("host=b", { merge: true, group_by: "host" }),
    ]);
  });

  test("does not mistake a longer name for a shorter one", () => {
    expect(expandQueries([metricQuery("host=$hostname")], { host: ["a"] })).toEqual([
      metricQuery("host=$hostname"),
    ]);
  });

  test("becomes at most fifty queries", () => {
    const manyValues = Array.from({ length: 40 }, (_, k) => `v${k}`);
    const expanded = expandQueries([metricQuery("a=$a,b=$b")], { a: manyValues, b: manyValues });
    expect(expanded.length).toBe(50);
  });
});

describe("an expression", () => {
  const expectExpansion = (expression: string, host: string[], expected: string) =>
    expect(expandQueries([promqlQuery(expression)], { host })).toEqual([promqlQuery(expected)]);

  test("is equal to one value, and matches several or all by a pattern", () => {
    expectExpansion('up{host="$host"}', ["a"], 'up{host="a"}');
    expectExpansion('up{host="$host"}', ["a", "b.c"], 'up{host=~"(a|b\\\\.c)"}');
    expectExpansion('up{host!="$host"}', ["a", "b"], 'up{host!~"(a|b)"}');
    expectExpansion('up{host="$host"}', [], 'up{host=~".*"}');
    expectExpansion('up{host=~"$host"}', ["a+"], 'up{host=~"a\\\\+"}');
    expectExpansion('up{host="${host}.net"}', [], 'up{host=~".*\\\\.net"}');
  });

  test("cannot be broken by a value with quotes", () => {
    expectExpansion('up{host="$host"}', ['"} or x{a="'], 'up{host="\\"} or x{a=\\""}');
  });

  test("keeps texts that are not variables", () => {
    expectExpansion('up{host=~"a$"} > $other', ["x"], 'up{host=~"a$"} > $other');
  });
});

test("titles contain the chosen values", () => {
  expect(expandTitle("CPU of $host, ${x}", { host: ["a", "b"] })).toBe("CPU of a, b, ${x}");
  expect(expandTitle("CPU of $host", { host: [] })).toBe("CPU of all");
});

test("values are read from the address, one for a variable with a single value", () => {
  const params = new URLSearchParams("var.host=a&var.host=b&var.dc=x&var.dc=y&var.dc=");
  const variables = [
    { name: "host", tag: "host", multi: false },
    { name: "dc", tag: "dc", multi: true },
    { name: "other", tag: "other", multi: true },
  ];
  expect(chosenOf(params, variables)).toEqual({ host: ["a"], dc: ["x", "y"], other: [] });
});
