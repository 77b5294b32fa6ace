import { expect, it } from "vitest";
import type { Annotation, PanelQuery } from "../api/types";
import { annotationsOf, periodsOf } from "./annotations";

const annotation = (change: Partial<Annotation>): Annotation => ({
  id: "1",
  time: 0,
  end: null,
  text: "",
  tags: {},
  source: "user",
  author: "",
  ...change,
});
const gapOf = (host: string) => annotation({ source: "gap", tags: { host } });
const series = (...tags: Record<string, string>[]) => tags.map((tags) => ({ tags }));
const promql = (expression: string): PanelQuery[] => [{ kind: "promql", expression }];

it("draws gaps only on charts of their host", () => {
  const gaps = ["web1", "web2"].map(gapOf);
  const hostsIn = (...args: [ReturnType<typeof series>, PanelQuery[]]) =>
    annotationsOf(gaps, ...args).map(({ tags }) => tags["host"]);
  expect(hostsIn(series({ host: "web2" }, { host: "web3" }), [])).toEqual(["web2"]);
  expect(hostsIn(series({ dc: "fra" }), promql("sum by (dc) (up)"))).toEqual([]);
  expect(hostsIn(series({}), promql('sum(rate(a{x="1", host = "web1"}[5m]))'))).toEqual(["web1"]);
  expect(hostsIn(series({}), promql('sum(a{ghost="web1", host="web11"})'))).toEqual([]);
  const merged: PanelQuery = { kind: "metric", metric: "a", tags: "dc=fra,host=web2" };
  expect(hostsIn(series({}), [merged])).toEqual(["web2"]);
  expect(hostsIn([], [])).toEqual([]);
});

it("draws a user's annotations unless they contradict all series", () => {
  const ofHost = annotation({ tags: { host: "web1" } });
  const ofAll = annotation({ id: "2" });
  expect(annotationsOf([ofHost, ofAll], series({ dc: "fra" }), [])).toEqual([ofHost, ofAll]);
  expect(annotationsOf([ofHost, ofAll], series({ host: "web2" }), [])).toEqual([ofAll]);
  const elsewhere = annotation({ tags: { host: "web1", dc: "ams" } });
  expect(annotationsOf([elsewhere], series({ host: "web1", dc: "fra" }), [])).toEqual([]);
});

it("joins overlapping periods of a source", () => {
  const period = (source: Annotation["source"], time: number, end: number) =>
    annotation({ source, time, end });
  const periods = periodsOf([
    period("gap", 20, 30),
    period("gap", 0, 10),
    annotation({ time: 3 }),
    period("user", 5, 8),
    period("gap", 10, 15),
    period("gap", 21, 22),
  ]);
  expect(periods.map(({ source, start, end }) => `${source} ${start}-${end}`)).toEqual([
    "gap 0-15",
    "user 5-8",
    "gap 20-30",
  ]);
});
