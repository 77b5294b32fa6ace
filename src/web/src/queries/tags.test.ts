import { expect, test } from "vitest";
import { namesOf, selectionOf, tagsOf, toggleTag } from "./tags";

test("a value is chosen, replaced and removed", () => {
  let tags = toggleTag("", "host", "web1");
  tags = toggleTag(tags, "core", "0");
  expect(tags).toBe("host=web1,core=0");
  tags = toggleTag(tags, "host", "web2");
  expect(tags).toBe("host=web2,core=0");
  expect(toggleTag(tags, "host", "web2")).toBe("core=0");
});

test("only the first equals sign of a pair separates name and value", () => {
  expect([...selectionOf("query=a=b, host = c ")]).toEqual([
    ["query", "a=b"],
    ["host", "c"],
  ]);
  expect(tagsOf(selectionOf("query=a=b"))).toBe("query=a=b");
});

test("values that contain separators are quoted, and read from quotes", () => {
  expect(tagsOf(new Map([["host", "web1 <b>"]]))).toBe("host=web1 <b>");
  expect(tagsOf(new Map([["mount", "/a,b"]]))).toBe('mount="/a,b"');
  for (const value of ["a,b", " a", "a ", '"a"', 'a,"\\', "C:\\", "a=b"]) {
    const selection = new Map([
      ["host", value],
      ["a,=b", "c"],
    ]);
    expect(selectionOf(tagsOf(selection))).toEqual(selection);
  }
});

test("an incomplete filter is read as far as possible", () => {
  expect([...selectionOf('a=1,b="x,y')]).toEqual([
    ["a", "1"],
    ["b", "x,y"],
  ]);
  expect([...selectionOf("a=1,host")]).toEqual([["a", "1"]]);
});

test("names are separated by commas", () => {
  expect(namesOf(" host, ,core")).toEqual(["host", "core"]);
  expect(namesOf(undefined)).toEqual([]);
});
