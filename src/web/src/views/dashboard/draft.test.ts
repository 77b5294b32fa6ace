import { describe, expect, test } from "vitest";
import type { Dashboard } from "../../api/types";
import {
  chartPanel,
  emptyDashboard,
  exportedDashboard,
  variablesFault,
  readExport,
  textPanel,
  withCopy,
  withPanel,
  withoutPanel,
} from "./draft";

describe("panels", () => {
  const withTwoPanels = (dashboard: Dashboard) =>
    withPanel(withPanel(dashboard, chartPanel("a", [])), textPanel());

  test("are added with new identifiers at free places", () => {
    const { panels } = withTwoPanels(emptyDashboard("x"));
    expect(panels.map(({ id, x, y }) => [id, x, y])).toEqual([
      ["p1", 0, 0],
      ["p2", 6, 0],
    ]);
  });

  test("are copied below the original, and removed without a gap", () => {
    const copied = withCopy(withTwoPanels(emptyDashboard("x")), "p1");
    expect(copied.panels.at(-1)).toMatchObject({ id: "p3", title: "a", x: 0, y: 8 });
    expect(withoutPanel(copied, "p1").panels.at(-1)).toMatchObject({ id: "p3", x: 0, y: 0 });
  });
});

test("each error in variables is described", () => {
  const variable = (name: string, tag = "host") => ({ name, tag, multi: false });
  expect(variablesFault([variable("a"), variable("b")])).toBeUndefined();
  expect(variablesFault([variable("a"), variable("a")])).toContain("Two");
  expect(variablesFault([variable("a b")])).toContain("“a b”");
  expect(variablesFault([variable("")])).toContain("name");
  expect(variablesFault([variable("a", "")])).toContain("tag");
});

test("an export is read, as a bare dashboard or as the daemon's answer", () => {
  const dashboard = emptyDashboard("x");
  for (const content of [dashboard, { name: "x", version: 3, dashboard }]) {
    const parsed = readExport(JSON.stringify(content));
    expect(typeof parsed === "object" && exportedDashboard(parsed)).toEqual(dashboard);
  }
  for (const text of ["", "{", "[]", "null", "3", '"x"']) {
    expect(typeof readExport(text), text).toBe("string");
  }
});
