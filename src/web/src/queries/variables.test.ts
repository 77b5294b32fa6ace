import { describe, expect, test } from "vitest";
import type { PanelQuery } from "../api/types";
import { expandQueries, chosenOf, expandTitle } from "./variables";

const metric = (tags: string, more = {}): PanelQuery => ({
  kind: "metric",
  metric: "cpu",
  tags,
  ...more,
});
const promql = (expression: string): PanelQuery => ({ kind: "promql", expression });

describe("a metric's query", () => {
  test("requests the chosen value", () => {
    const tags = "host=$host,core=${core}";
    expect(expandQueries([metric(tags)], { host: ["a$1"], core: ["0"] })).toEqual([
      metric("host=a$1,core=0"),
    ]);
  });

  test("requests a value with a comma as one value", () => {
    expect(expandQueries([metric("mount=$mount,core=0")], { mount: ["/a,b"] })).toEqual([
      metric('mount="/a,b",core=0'),
    ]);
  });

  test("requests any value when all are chosen", () => {
    expect(expandQueries([metric("host=$host,core=0")], { host: [] })).toEqual([metric("core=0")]);
  });

  test("becomes one query for each of several values, which stay separate when merged", () => {
    const query = metric("host=$host", { merge: true });
    expect(expandQueries([query], { host: ["a", "b"] })).toEqual([
      metric("host=a", { merge: true, group_by: "host" }),
      metric("host=b", { merge: true, group_by: "host" }),
    ]);
  });

  test("does not mistake a longer name for a shorter one", () => {
    expect(expandQueries([metric("host=$hostname")], { host: ["a"] })).toEqual([
      metric("host=$hostname"),
    ]);
  });

  test("becomes at most fifty queries", () => {
    const many = Array.from({ length: 40 }, (_, at) => `v${at}`);
    const all = expandQueries([metric("a=$a,b=$b")], { a: many, b: many });
    expect(all.length).toBe(50);
  });
});

describe("an expression", () => {
  const check = (expression: string, host: string[], expected: string) =>
    expect(expandQueries([promql(expression)], { host })).toEqual([promql(expected)]);

  test("is equal to one value, and matches several or all by a pattern", () => {
    check('up{host="$host"}', ["a"], 'up{host="a"}');
    check('up{host="$host"}', ["a", "b.c"], 'up{host=~"(a|b\\\\.c)"}');
    check('up{host!="$host"}', ["a", "b"], 'up{host!~"(a|b)"}');
    check('up{host="$host"}', [], 'up{host=~".*"}');
    check('up{host=~"$host"}', ["a+"], 'up{host=~"a\\\\+"}');
    check('up{host="${host}.net"}', [], 'up{host=~".*\\\\.net"}');
  });

  test("cannot be broken by a value with quotes", () => {
    check('up{host="$host"}', ['"} or x{a="'], 'up{host="\\"} or x{a=\\""}');
  });

  test("keeps texts that are not variables", () => {
    check('up{host=~"a$"} > $other', ["x"], 'up{host=~"a$"} > $other');
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
