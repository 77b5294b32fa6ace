import { expect, it } from "vitest";
import {
  CHOSEN_MAX,
  coveredBy,
  matchersOfAll,
  meetsAll,
  NOTHING_CHOSEN,
  withClick,
} from "./chosen";

const ORDER = ["a", "b", "c", "d"];
const click = (choice: typeof NOTHING_CHOSEN, key: string, isRange = false) =>
  withClick(choice, key, { order: ORDER, isRange });

it("chooses one alert, and with Shift all alerts from the last click", () => {
  const one = click(NOTHING_CHOSEN, "b");
  expect([...one.chosen]).toEqual(["b"]);
  const range = click(one, "d", true);
  expect([...range.chosen]).toEqual(["b", "c", "d"]);
  expect([...click(range, "c").chosen]).toEqual(["b", "d"]);
  // A range backwards; the clicked alert decides whether the range is chosen.
  expect([...click(click(range, "c"), "a", true).chosen].sort()).toEqual(ORDER);
  expect([...click(range, "b", true).chosen]).toEqual([]);
});

it("chooses only the clicked alert when the last one is no longer listed", () => {
  const gone = { chosen: new Set(["x"]), anchor: "x" };
  expect([...click(gone, "c", true).chosen]).toEqual(["x", "c"]);
});

it("limits the number of chosen alerts", () => {
  const order = Array.from({ length: CHOSEN_MAX + 10 }, (_, k) => String(k));
  const all = withClick({ chosen: new Set(), anchor: "0" }, order.at(-1) ?? "", {
    order,
    isRange: true,
  });
  expect(all.chosen.size).toBe(CHOSEN_MAX);
});

it("covers all chosen alerts by one list of matchers", () => {
  const alerts = [
    { alertname: "High", host: "web.1", mount: "/" },
    { alertname: "High", host: "web2" },
  ];
  const matchers = matchersOfAll(alerts);
  expect(matchers).toEqual([
    { name: "alertname", value: "High", isRegex: false, isEqual: true },
    { name: "host", value: "web\\.1|web2", isRegex: true, isEqual: true },
    { name: "mount", value: "/|", isRegex: true, isEqual: true },
  ]);
  expect(alerts.map((labels) => meetsAll(matchers, labels))).toEqual([true, true]);
  expect(meetsAll(matchers, { alertname: "High", host: "web2", mount: "/" })).toBe(true);
  expect(meetsAll(matchers, { alertname: "High", host: "webx1", mount: "/" })).toBe(false);
  expect(meetsAll(matchers, { alertname: "Low", host: "web2" })).toBe(false);
});

it("covers alerts that have all labels of an acknowledged one", () => {
  const isCovered = coveredBy([
    { alertname: "High", host: "a" },
    { alertname: "High", host: "b", mount: "/" },
  ]);
  expect(isCovered({ alertname: "High", host: "a" })).toBe(true);
  expect(isCovered({ alertname: "High", host: "a", mount: "/" })).toBe(true);
  expect(isCovered({ alertname: "High", host: "b" })).toBe(false);
  expect(isCovered({ alertname: "High", host: "b", mount: "/", dc: "x" })).toBe(true);
  expect(isCovered({ host: "a" })).toBe(false);
});

it("leaves a pattern that JavaScript does not know unchecked", () => {
  const matchers = [{ name: "host", value: "(?P<a", isRegex: true, isEqual: true }];
  expect(meetsAll(matchers, { host: "a" })).toBeUndefined();
});
