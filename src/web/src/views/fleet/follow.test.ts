import { describe, expect, it } from "vitest";
import type { Host, HostsAnswer } from "../../api/types";
import { ApiError } from "../../api/client";
import { host } from "./fixtures";
import { followHosts, withChanges } from "./follow";

function answer(hosts: Host[], changes: Partial<HostsAnswer> = {}): HostsAnswer {
  return {
    now: 0,
    late_after_ms: 90_000,
    down_after_ms: 240_000,
    totals: { up: hosts.length, late: 0, down: 0, stopped: 0 },
    hosts,
    version: "1.1",
    is_partial: false,
    pings: {},
    alerts: {},
    ...changes,
  };
}

const totals = (up: number, down = 0) => ({ up, down, late: 0, stopped: 0 });

describe("following the hosts", () => {
  const known = answer([host("a"), host("b", { state: "late" }), host("c")]);

  it("merges new facts and pings, and keeps other hosts as they are", () => {
    const changes = answer([host("c", { state: "down" }), host("d")], {
      is_partial: true,
      pings: { b: 2000 },
      totals: totals(3, 1),
    });
    const merged = withChanges(known, changes);
    expect(merged?.hosts.map(({ host, state, pinged }) => [host, state, pinged])).toEqual([
      ["a", "up", 1000],
      ["b", "up", 2000],
      ["c", "down", 1000],
      ["d", "up", 1000],
    ]);
    expect(merged?.hosts[0]).toBe(known.hosts[0]);
  });

  it("asks for the whole list after a removal, and when a pinged host is unknown", async () => {
    const removed = answer([], { is_partial: true, totals: totals(2) });
    expect(withChanges(known, removed)).toBeUndefined();
    const unknown = answer([], { is_partial: true, totals: totals(3), pings: { x: 1 } });
    expect(withChanges(known, unknown)).toBeUndefined();
    const asked: unknown[] = [];
    const answers = [known, removed, answer([host("a"), host("b")], { version: "1.3" })];
    const load = followHosts((params) => {
      asked.push(params);
      return Promise.resolve(answers.shift() ?? known);
    });
    const { signal } = new AbortController();
    await load(signal);
    expect((await load(signal)).hosts).toHaveLength(2);
    await load(signal);
    expect(asked).toEqual([{}, { since: "1.1" }, {}, { since: "1.3" }]);
  });

  it("asks an older daemon, which rejects the parameter, for the whole list", async () => {
    const asked: unknown[] = [];
    const load = followHosts((params) => {
      asked.push(params);
      if (params.since) return Promise.reject(new ApiError(400, "invalid", "no parameter since"));
      return Promise.resolve(known);
    });
    const { signal } = new AbortController();
    await load(signal);
    expect((await load(signal)).hosts).toHaveLength(known.hosts.length);
    expect(asked).toEqual([{}, { since: "1.1" }, {}]);
  });

  it("replaces its list with the answer of a restarted daemon, which is whole", () => {
    const whole = answer([host("z")]);
    expect(withChanges(known, whole)).toBe(whole);
  });
});
