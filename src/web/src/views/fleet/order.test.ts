import { describe, expect, it } from "vitest";
import type { Host, HostLines } from "../../api/types";
import { choiceOf } from "./choice";
import { host } from "./fixtures";
import { filterRows, heldOrder, ranksOf, rowsOf, sortRows, tagCounts } from "./order";

const cpuLines = (last: number | null): HostLines => ({ cpu: { last, max: 100, line: "" } });

function shownHosts(
  hosts: Host[],
  search: string,
  lines: Record<string, HostLines> = {},
): string[] {
  const choice = choiceOf(new URLSearchParams(search));
  const ranks = ranksOf(hosts.map(({ host }) => host));
  return sortRows(filterRows(rowsOf(hosts, lines), choice), choice, ranks).map(
    (row) => row.host.host,
  );
}

describe("order", () => {
  it("shows the worst states first by default, and equal states by name", () => {
    const hosts = [
      host("web-10"),
      host("web-2"),
      host("a", { state: "late" }),
      host("z", { state: "down" }),
    ];
    expect(shownHosts(hosts, "")).toEqual(["z", "a", "web-2", "web-10"]);
  });

  it("shows urgent alerts before late hosts, and other alerts before hosts that are well", () => {
    const hosts = [
      host("well"),
      host("late", { state: "late" }),
      host("warned"),
      host("urgent"),
      host("down", { state: "down" }),
      host("warned-twice"),
    ];
    const alerts = {
      urgent: { critical: 1, warning: 1 },
      warned: { warning: 1 },
      "warned-twice": { warning: 2 },
    };
    const rows = rowsOf(hosts, undefined, alerts);
    const ranks = ranksOf(hosts.map(({ host }) => host));
    const order = (search: string) =>
      sortRows(rows, choiceOf(new URLSearchParams(search)), ranks).map((row) => row.host.host);
    expect(order("")).toEqual(["down", "urgent", "late", "warned-twice", "warned", "well"]);
    expect(order("sort=-alerts").slice(0, 3)).toEqual(["urgent", "warned-twice", "warned"]);
    expect(rows.find((row) => row.host.host === "urgent")?.alerts?.text).toBe(
      "1 critical, 1 warning",
    );
  });

  it("puts hosts without a value last in both directions", () => {
    const hosts = [host("none"), host("low"), host("high"), host("null")];
    const lines = { low: cpuLines(0), high: cpuLines(90), null: cpuLines(null) };
    expect(shownHosts(hosts, "sort=-cpu", lines)).toEqual(["high", "low", "none", "null"]);
    expect(shownHosts(hosts, "sort=cpu", lines)).toEqual(["low", "high", "none", "null"]);
  });

  it("sorts names in descending order on request", () => {
    expect(shownHosts([host("a"), host("b"), host("c")], "sort=-host")).toEqual(["c", "b", "a"]);
  });

  it("puts the oldest ping and the longest uptime first in descending order", () => {
    const hosts = [host("old", { pinged: 1, booted: 5 }), host("new", { pinged: 9, booted: 1 })];
    expect(shownHosts(hosts, "sort=-pinged")).toEqual(["old", "new"]);
    expect(shownHosts(hosts, "sort=-uptime")).toEqual(["new", "old"]);
  });
});

describe("filter", () => {
  const hosts = [
    host("db-1", { tags: { role: "db", dc: "eu" } }),
    host("db-2", { tags: { role: "db", dc: "us" }, state: "down" }),
    host("web-1", { tags: { role: "web", dc: "eu" } }),
    host("bare"),
  ];

  it("finds hosts that have every word in name or tags", () => {
    expect(shownHosts(hosts, "q=DB+dc%3Deu")).toEqual(["db-1"]);
    expect(shownHosts(hosts, "q=nothing")).toEqual([]);
  });

  it("requires one of the chosen values of each tag", () => {
    expect(shownHosts(hosts, "tags=role=db,role=web,dc=eu")).toEqual(["db-1", "web-1"]);
    expect(shownHosts(hosts, "tags=role=db&state=down")).toEqual(["db-2"]);
  });

  it("counts the hosts of each value given the other choices", () => {
    const choice = choiceOf(new URLSearchParams("tags=role=db"));
    expect(tagCounts(rowsOf(hosts, undefined), choice)).toEqual([
      {
        name: "dc",
        values: [
          { value: "eu", hosts: 1, chosen: false },
          { value: "us", hosts: 1, chosen: false },
        ],
      },
      {
        name: "role",
        values: [
          { value: "db", hosts: 2, chosen: true },
          { value: "web", hosts: 1, chosen: false },
        ],
      },
    ]);
  });

  it("keeps a choice that no host matches, so that it can be removed", () => {
    const choice = choiceOf(new URLSearchParams("tags=role=gone"));
    const role = tagCounts(rowsOf(hosts, undefined), choice).find(({ name }) => name === "role");
    expect(role?.values.find(({ value }) => value === "gone")).toEqual({
      value: "gone",
      hosts: 0,
      chosen: true,
    });
  });

  it("accepts hosts whose names are object properties", () => {
    const hosts = [host("constructor"), host("__proto__")];
    expect(shownHosts(hosts, "sort=-cpu")).toEqual(["__proto__", "constructor"]);
    expect(shownHosts(hosts, "tags=toString=x")).toEqual([]);
  });
});

describe("held order", () => {
  it("keeps its order, without removed and new hosts", () => {
    expect(heldOrder(["c", "a", "b"], new Set(["a", "b", "c", "d"]))).toEqual(["c", "a", "b"]);
    expect(heldOrder(["c", "a", "b"], new Set(["a", "b"]))).toEqual(["a", "b"]);
  });
});
