import { expect, it } from "vitest";
import { newRow, rolesFault, rolesOf, roleTexts, rowsOf } from "./roles";

it("names projects without a name, and projects with two roles", () => {
  const row = newRow([]);
  expect(rolesFault([row])).toBeUndefined();
  expect(rolesFault([row, newRow([row])])).toContain("project for each");
  expect(rolesFault([row, { project: " default ", role: "admin" }])).toContain("default");
  expect(rolesFault([])).toBeUndefined();
});

it("keeps roles from rows to the daemon and back", () => {
  const roles = { default: "viewer", "*": "admin" } as const;
  expect(rolesOf(rowsOf(roles))).toEqual(roles);
  expect(roleTexts(roles)).toEqual(["viewer of default", "admin of everything"]);
});
