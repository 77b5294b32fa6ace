import { expect, it } from "vitest";
import type { HostLines } from "../../api/types";
import { ALL_HOSTS_MAX, firstFullByHost, matchersOfFleet, NAMES_LENGTH_MAX } from "./until-full";

const names = (count: number) => Array.from({ length: count }, (_, k) => `web${k}.example.com`);
const linesOf = (hosts: string[]): Record<string, HostLines> =>
  Object.fromEntries(
    hosts.map((host, k) => [host, { filesystem: { mount: "/", used_percent: k / hosts.length } }]),
  );

it("asks for all file systems of a small fleet", () => {
  expect(matchersOfFleet(names(ALL_HOSTS_MAX), {})).toBe("");
});

it("asks for the hosts with the fullest file systems of a large fleet, within a limit", () => {
  const hosts = names(5000);
  const matcher = matchersOfFleet(hosts, linesOf(hosts));
  expect(matcher).toMatch(/^\{host=~"web4999\\\\\.example\\\\\.com\|web4998\\\\\.example/);
  expect(encodeURIComponent(matcher).length).toBeLessThan(2 * NAMES_LENGTH_MAX);
  expect(matcher.split("|").length).toBeGreaterThan(30);
});

it("matches no host of a large fleet without file systems", () => {
  expect(matchersOfFleet(names(5000), {})).toBe('{host=~""}');
});

it("keeps the file system of each host that is full first", () => {
  const until = (host: string, mount: string, median: number) => ({
    ...{ host, mount, median },
    early: undefined,
    late: undefined,
  });
  const found = firstFullByHost([until("a", "/x", 1), until("b", "/", 2), until("a", "/", 3)]);
  expect([...found].map(([host, { mount }]) => [host, mount]).sort()).toEqual([
    ["a", "/x"],
    ["b", "/"],
  ]);
});
