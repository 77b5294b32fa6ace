import { expect, it } from "vitest";
import { headAndTail, labelsOf } from "./labels";
import { nearestFirst } from "./tip";

const series = (...tags: Record<string, string>[]) =>
  tags.map((tags) => ({ metric: "m", display: "avg", tags }));

it("name the host first, and leave out tags that are not needed", () => {
  const disks = series(
    { dc: "fra", device: "sda", host: "a", rack: "1" },
    { dc: "fra", device: "sdb", host: "a", rack: "1" },
    { dc: "ams", device: "sda", host: "b", rack: "2" },
  );
  expect(labelsOf(disks, [])).toEqual(["a device=sda", "a device=sdb", "b device=sda"]);
  expect(labelsOf(disks, ["rack"])).toEqual([
    "a device=sda rack=1",
    "a device=sdb rack=1",
    "b device=sda rack=2",
  ]);
});

it("have one tag when one tells all series apart", () => {
  expect(labelsOf(series({ a: "1", z: "x" }, { a: "2", z: "y" }), [])).toEqual(["1", "2"]);
  expect(labelsOf(series({ a: "1" }, { b: "1" }), [])).toEqual(["a=1", "b=1"]);
});

it("are cut in the middle, but not within a letter", () => {
  expect(headAndTail("web1")).toEqual(["web1", ""]);
  expect(headAndTail("db-frankfurt-cluster-node-17")).toEqual(["db-frankfurt-clust", "er-node-17"]);
  const [head, tail] = headAndTail(`${"x".repeat(20)}😀123456789`);
  expect([head, tail]).toEqual(["x".repeat(20), "😀123456789"]);
});

it("of the series nearest to the pointer are listed by value", () => {
  const candidates = [40, 3, 12, 7].map((distance, index) => ({
    index,
    distance,
    value: 10 * index,
  }));
  const { shown, nearest } = nearestFirst(candidates, 3);
  expect(shown.map(({ index }) => index)).toEqual([3, 2, 1]);
  expect(nearest?.index).toBe(1);
});
