import { expect, it } from "vitest";
import type { Alert, AlertingRule, RuleGroup } from "../../api/types";
import {
  alertsOf,
  chosenSeverities,
  commonLabels,
  exactSearch,
  filterAlerts,
  firingOn,
  groupsOf,
  nameOfRule,
  ownLabels,
  ruleNamed,
  severitiesOf,
  valueText,
  withSeverity,
} from "./listed";

const alert = (labels: Record<string, string>, changes: Partial<Alert> = {}): Alert => ({
  labels: { alertname: "High", ...labels },
  annotations: {},
  state: "firing",
  activeAt: "2026-11-20T10:00:00Z",
  value: "1e+00",
  ...changes,
});

const rule = (alerts: Alert[], changes: Partial<AlertingRule> = {}): AlertingRule => ({
  type: "alerting",
  name: "High",
  query: "load > 5",
  labels: {},
  health: "ok",
  evaluationTime: 0,
  lastEvaluation: "2026-11-20T10:00:00Z",
  state: "firing",
  duration: 0,
  keepFiringFor: 0,
  annotations: {},
  alerts,
  ...changes,
});

const group = (...rules: AlertingRule[]): RuleGroup => ({
  name: "own",
  file: "own.yml",
  limit: 0,
  interval: 60,
  evaluationTime: 0,
  lastEvaluation: "",
  missedEvaluations: 0,
  rules,
});

it("sorts alerts by state, severity and age, with silenced alerts last", () => {
  const alerts = [
    alert({ host: "pending" }, { state: "pending" }),
    alert({ host: "old", severity: "warning" }),
    alert({ host: "new", severity: "warning" }, { activeAt: "2026-11-20T11:00:00Z" }),
    alert({ host: "bad", severity: "critical" }),
    alert({ host: "quiet", severity: "critical" }, { silencedBy: ["s1"] }),
  ];
  const listed = alertsOf([group(rule(alerts))]);
  const hosts = listed.map(({ alert }) => alert.labels["host"]);
  expect(hosts).toEqual(["bad", "new", "old", "pending", "quiet"]);
  expect(filterAlerts(listed, "HOST=ne", "").map(({ alert }) => alert.labels["host"])).toEqual([
    "new",
  ]);
  const exactly = (host: string) => filterAlerts(listed, exactSearch("host", host), "").length;
  expect([exactly("new"), exactly("ne")]).toEqual([1, 0]);
  expect(filterAlerts(listed, "", "silenced")).toHaveLength(1);
  expect(filterAlerts(listed, "warning", "firing")).toHaveLength(2);
});

it("groups many alerts of a rule at the place of the first, and filters by severity", () => {
  const many = Array.from({ length: 5 }, (_, k) => alert({ host: `h${k}`, severity: "warning" }));
  const few = [alert({ host: "a", severity: "critical" }), alert({ host: "b" })];
  const listed = alertsOf([group(rule(few), rule(many, { name: "HostAdded" }))]);
  const groups = groupsOf(listed).map(({ name, alerts }) => `${name ?? ""} ${alerts.length}`);
  expect(groups).toEqual([" 1", "HostAdded 5", " 1"]);
  expect(severitiesOf(listed)).toEqual([
    { name: "critical", count: 1 },
    { name: "warning", count: 5 },
  ]);
  expect(filterAlerts(listed, "", "", ["warning"])).toHaveLength(5);
  expect(filterAlerts(listed, "", "", ["warning", "critical"])).toHaveLength(6);
  expect(chosenSeverities(withSeverity("warning", "critical"))).toEqual(["warning", "critical"]);
  expect(withSeverity("warning,critical", "warning")).toBe("critical");
  expect(chosenSeverities("")).toEqual([]);
  expect(groupsOf([])).toEqual([]);
  const ofRule = listed.filter(({ rule }) => rule.name === "HostAdded");
  expect(commonLabels(ofRule)).toEqual({ alertname: "High", severity: "warning" });
  expect(commonLabels([])).toEqual({});
});

it("finds what fires on a host", () => {
  const alerts = [
    alert({ host: "web1" }),
    alert({ host: "web10" }),
    alert({ host: "web1", cpu: "0" }, { state: "pending" }),
    alert({ host: "web1", cpu: "1" }, { silencedBy: ["s1"] }),
  ];
  const firing = firingOn(alertsOf([group(rule(alerts))]), "web1");
  expect(firing.map(({ alert }) => alert)).toEqual([alerts[0]]);
});

it("finds each rule by its name, even rules with the same name", () => {
  const ruleGroup = group(
    rule([], { labels: { severity: "a" } }),
    rule([]),
    rule([], { name: "Low" }),
  );
  const names = ruleGroup.rules.map((rule) => nameOfRule(ruleGroup, rule));
  expect(names).toEqual(["own/High/1", "own/High/2", "own/Low"]);
  for (const [k, name] of names.entries()) {
    expect(ruleNamed([ruleGroup], name)?.rule).toBe(ruleGroup.rules[k]);
  }
  expect(ruleNamed([ruleGroup], "own/None")).toBeUndefined();
});

it("names rules with the same name by severity, and finds them with and without a number", () => {
  const severities = ["warning", "critical"];
  const ruleGroup = group(...severities.map((severity) => rule([], { labels: { severity } })));
  const names = ruleGroup.rules.map((rule) => nameOfRule(ruleGroup, rule));
  expect(names).toEqual(["own/High/warning", "own/High/critical"]);
  const find = (name: string) => ruleNamed([ruleGroup], name)?.rule.labels["severity"];
  expect(names.map(find)).toEqual(severities);
  expect(find("own/High/2")).toBe("critical");
  expect(find("own/High")).toBe("warning");
  expect(find("own/High/info")).toBeUndefined();
});

it("shows the labels that distinguish an alert from others of its rule", () => {
  const listedAlert = alert({ severity: "page", team: "db", host: "web1", cpu: "0" });
  expect(ownLabels({ alert: listedAlert, rule: rule([], { labels: { team: "db" } }) })).toEqual([
    ["cpu", "0"],
    ["host", "web1"],
  ]);
});

it("writes values without exponents where possible", () => {
  for (const [text, expected] of [
    ["1e+00", "1"],
    ["9.273456e+01", "92.73"],
    ["1.234567e+06", "1,234,570"],
    ["+Inf", "+Inf"],
    ["NaN", "NaN"],
    ["1e-09", "1.00e-9"],
    ["0e+00", "0"],
  ] as const) {
    expect(valueText(text)).toBe(expected);
  }
});
