import { describe, expect, test } from "vitest";
import type { PanelQuery } from "../api/types";
import { paramsOf, queriesOf } from "./address";

function searchOf(queries: PanelQuery[]): URLSearchParams {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(paramsOf(queries))) {
    if (value !== undefined) search.set(name, value);
  }
  return search;
}

describe("queries in an address", () => {
  test("are read as they were written", () => {
    const queries: PanelQuery[] = [
      { kind: "metric", metric: "cpu", tags: "host=a,core=0", group_by: "host,core", top: 5 },
      { kind: "promql", expression: 'rate(x{a="&=?#"}[5m])', legend: "{{host}}", hidden: true },
      { kind: "metric", metric: "<img src=x>", tags: "", merge: true, bottom: 3 },
    ];
    expect(queriesOf(new URLSearchParams(searchOf(queries).toString()))).toEqual(queries);
  });

  test("have no number when there is only one", () => {
    const search = searchOf([{ kind: "metric", metric: "up", tags: "host=a" }]);
    expect(search.toString()).toBe("metric=up&tags=host%3Da");
  });

  test("that are incomplete are omitted without a gap", () => {
    const search = searchOf([
      { kind: "metric", metric: "", tags: "host=a" },
      { kind: "promql", expression: "1" },
    ]);
    expect([...search.keys()]).toEqual(["expression"]);
  });

  test("with an invalid number request all series", () => {
    for (const top of ["0", "-1", "x", "1001", "1e3", ""]) {
      expect(queriesOf(new URLSearchParams({ metric: "up", top }))).toEqual([
        { kind: "metric", metric: "up", tags: "" },
      ]);
    }
  });

  test("beyond the twelfth are dropped", () => {
    const queries = Array.from({ length: 40 }, (_, k): PanelQuery => {
      return { kind: "metric", metric: `m${k}`, tags: "" };
    });
    expect(queriesOf(searchOf(queries))).toEqual(queries.slice(0, 12));
  });
});
