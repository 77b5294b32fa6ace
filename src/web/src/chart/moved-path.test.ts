import { expect, it } from "vitest";
import { movedPath, scopeOf } from "./moved-path";

const line = (metric: string, host?: string) => ({ metric, tags: host ? { host } : {} });

it("names the host and the metric that all series share", () => {
  expect(scopeOf([line("load", "a"), line("cpu", "a")])).toEqual({ tags: "host=a" });
  expect(scopeOf([line("load", "a"), line("load", "b")])).toEqual({ metric: "load" });
  expect(scopeOf([line("load", 'a,"b')])).toEqual({ tags: 'host="a,\\"b"', metric: "load" });
  expect(scopeOf([line("load", "a"), line("cpu")])).toEqual({});
  expect(scopeOf([{ metric: "up", tags: { instance: "x:1" } }]).tags).toBe("instance=x:1");
  expect(scopeOf([])).toEqual({});
});

it("writes the stretch in whole milliseconds", () => {
  const path = movedPath({ tags: "host=a" }, { start: 1.4, end: 2.6, zone: "UTC" });
  expect(path).toBe("/moved?tags=host%3Da&start=1&end=3&tz=UTC");
});
