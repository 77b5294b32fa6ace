import { expect, it } from "vitest";
import type { Panel } from "../../api/types";
import { shownPanels } from "./rows";

const chart = (id: string, y: number, more: Partial<Panel> = {}): Panel =>
  ({ id, title: id, kind: "chart", queries: [], x: 0, y, w: 6, h: 4, ...more }) as Panel;
const row = (id: string, y: number, more: Partial<Panel> = {}): Panel =>
  ({ id, title: id, kind: "row", x: 0, y, w: 12, h: 1, ...more }) as Panel;

const HOSTS = ["a", "b", "c"];
const places = (panels: Panel[], folded: string[] = [], hosts = HOSTS) =>
  shownPanels(
    panels,
    () => hosts,
    ({ id }) => folded.includes(id),
  ).map(({ panel: { id, x, y }, values }) => [id, x, y, ...(values["host"] ?? [])]);

it("folds the panels of a row, and moves up what is below", () => {
  const panels = [chart("top", 0), row("one", 4), chart("in", 5), row("two", 9), chart("last", 10)];
  expect(places(panels)).toEqual([
    ["top", 0, 0],
    ["one", 0, 4],
    ["in", 0, 5],
    ["two", 0, 9],
    ["last", 0, 10],
  ]);
  expect(places(panels, ["one"])).toEqual([
    ["top", 0, 0],
    ["one", 0, 4],
    ["two", 0, 5],
    ["last", 0, 6],
  ]);
});

it("repeats a panel side by side, and moves panels below it down", () => {
  const panels = [chart("each", 0, { repeat: "host" }), chart("below", 4)];
  expect(places(panels)).toEqual([
    ["each~0", 0, 0, "a"],
    ["each~1", 6, 0, "b"],
    ["each~2", 0, 4, "c"],
    ["below", 0, 8],
  ]);
  expect(places(panels, [], ["only"])[0]).toEqual(["each", 0, 0, "only"]);
  // Without a value, the panel is shown once.
  expect(places(panels, [], [])).toEqual([
    ["each", 0, 0],
    ["below", 0, 4],
  ]);
});

it("repeats a row with its panels", () => {
  const panels = [row("host", 0, { repeat: "host" }), chart("in", 1, { repeat: "host" })];
  expect(places(panels, ["host~r1"])).toEqual([
    ["host~r0", 0, 0, "a"],
    ["in~r0", 0, 1, "a"],
    ["host~r1", 0, 5, "b"],
    ["host~r2", 0, 6, "c"],
    ["in~r2", 0, 7, "c"],
  ]);
});
