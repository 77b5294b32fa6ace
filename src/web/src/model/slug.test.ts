import { expect, test } from "vitest";
import { freeName, isSlug, slugOf } from "./slug";

test("titles become names that the daemon accepts", () => {
  expect(slugOf("Größe: CPU & Memory!")).toBe("gro-e-cpu-memory");
  for (const title of ["x".repeat(99), "a ".repeat(60), "--A--", "Ünï"]) {
    expect(isSlug(slugOf(title)), title).toBe(true);
  }
  expect(slugOf("日本")).toBe("");
});

test("a number is added to a name in use, within the limit of its length", () => {
  expect(freeName("hosts", ["hosts", "hosts-2"], "new")).toBe("hosts-3");
  expect(freeName("", [], "new")).toBe("new");
  const longName = "x".repeat(64);
  expect(freeName(longName, [longName], "new")).toBe(`${"x".repeat(62)}-2`);
});
