import { expect, test } from "vitest";
import { canBeAskedFor, namesOf, selectionOf, tagsOf, toggled } from "./tags";

test("a value is chosen, exchanged, and given up", () => {
  let tags = toggled("", "host", "web1");
  tags = toggled(tags, "core", "0");
  expect(tags).toBe("host=web1,core=0");
  tags = toggled(tags, "host", "web2");
  expect(tags).toBe("host=web2,core=0");
  expect(toggled(tags, "host", "web2")).toBe("core=0");
});

test("only the first equals sign of a pair divides", () => {
  expect([...selectionOf("query=a=b, host = c ")]).toEqual([
    ["query", "a=b"],
    ["host", "c"],
  ]);
  expect(tagsOf(selectionOf("query=a=b"))).toBe("query=a=b");
});

test("values that the daemon would cut apart are told", () => {
  expect(canBeAskedFor("host", "web1 <b>")).toBe(true);
  for (const value of ["a,b", " a", "a "]) expect(canBeAskedFor("host", value)).toBe(false);
});

test("names lie between commas", () => {
  expect(namesOf(" host, ,core")).toEqual(["host", "core"]);
  expect(namesOf(undefined)).toEqual([]);
});
