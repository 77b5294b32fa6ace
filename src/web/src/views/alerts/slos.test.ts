import { expect, it } from "vitest";
import type { AlertingRule, Rule, RuleGroup, Tags } from "../../api/types";
import { budgetLevel, budgetText, burnText, isExceeded, shareText, slosOf } from "./slos";

const pair = (long: string, short: string, rate: number) =>
  `max without (window) (slo:burn_rate{slo="shop", window="${long}"} > ${rate} and ignoring ` +
  `(window) slo:burn_rate{slo="shop", window="${short}"} > ${rate})`;

function rule(name: string, labels: Tags, more: Partial<AlertingRule> = {}): Rule {
  return {
    type: "alerting",
    name,
    labels: { slo: "shop", ...labels },
    query: "",
    health: "ok",
    evaluationTime: 0,
    lastEvaluation: "",
    state: "inactive",
    duration: 0,
    keepFiringFor: 0,
    annotations: {},
    ...more,
  };
}

const alerts = [
  rule("ErrorBudgetBurn", { severity: "warning" }, { state: "firing", query: pair("1d", "2h", 3) }),
  rule(
    "ErrorBudgetBurn",
    { severity: "critical" },
    { state: "firing", query: `${pair("1h", "5m", 14.4)} or ${pair("6h", "30m", 6)}` },
  ),
];

function group(name: string, rules: Rule[]): RuleGroup {
  const times = { interval: 60, evaluationTime: 0, lastEvaluation: "", missedEvaluations: 0 };
  return { name, file: "rules.yml", limit: 0, ...times, rules };
}

const shop = group("slo:shop", [rule("slo:target", { window: "30d" }), ...alerts]);

function vector(...samples: [string, Tags, number][]) {
  const result = samples.map(([name, tags, value]) => ({
    metric: { __name__: name, slo: "shop", ...tags },
    value: [0, String(value)] as [number, string],
  }));
  return { resultType: "vector" as const, result };
}

it("merges the values of each series of an SLO, the least budget first", () => {
  const answer = vector(
    ["slo:target", { window: "30d" }, 0.999],
    ["slo:budget_left", { window: "30d", job: "a" }, 0.5],
    ["slo:burn_rate", { window: "30d", job: "a" }, 0.5],
    ["slo:burn_rate", { window: "1h", job: "a" }, 20],
    ["slo:burn_rate", { window: "5m", job: "a" }, 30],
    ["slo:budget_left", { window: "30d", job: "b" }, -0.25],
    ["slo:burn_rate", { window: "30d", job: "b" }, 1.25],
  );
  const [slo, ...others] = slosOf([group("usual", alerts), shop], answer);
  expect(others).toEqual([]);
  expect(slo).toMatchObject({ name: "shop", window: "30d", target: 0.999, firing: "critical" });
  expect(slo?.series.map(({ tags }) => tags)).toEqual([{ job: "b" }, { job: "a" }]);
  expect(slo?.series[1]?.good).toBeCloseTo(0.9995, 9);
  expect(slo?.limits).toEqual([
    { severity: "warning", rate: 3, long: "1d", short: "2h" },
    { severity: "critical", rate: 14.4, long: "1h", short: "5m" },
    { severity: "critical", rate: 6, long: "6h", short: "30m" },
  ]);
  const exceeded = slo?.series.map((series) =>
    slo.limits.map((limit) => isExceeded(series, limit)),
  );
  expect(exceeded).toEqual([
    [false, false, false],
    [false, true, false],
  ]);
});

it("lists an SLO without events, and one with a failing rule, after the others", () => {
  const failing = { health: "err" as const, lastError: "many-to-many" };
  const other = group("slo:other", [
    rule("slo:target", { slo: "other", window: "7d" }),
    rule("slo:burn_rate", { slo: "other", window: "5m" }, failing),
  ]);
  const answer = vector(["slo:budget_left", { window: "30d" }, 1]);
  const slos = slosOf([other, shop], answer);
  expect(slos.map(({ name }) => name)).toEqual(["shop", "other"]);
  expect(slos[1]).toMatchObject({ series: [], error: "many-to-many", target: undefined });
  expect(slosOf([shop], undefined)[0]?.series).toEqual([]);
});

it("never rounds a share up to all", () => {
  expect(shareText(0.999)).toBe("99.9 %");
  expect(shareText(0.9999999)).toBe("99.999 %");
  expect(shareText(1)).toBe("100 %");
  expect(budgetText(0.827)).toBe("82 % left");
  expect(budgetText(0.004)).toBe("0.4 % left");
  expect(budgetText(-12.5)).toBe("1,250 % overspent");
  expect([0.5, 0.2, 0, -1].map(budgetLevel)).toEqual(["", "warn", "bad", "bad"]);
  expect([undefined, 0.523, 14.4, 1000].map(burnText)).toEqual(["–", "0.52", "14.4", "1,000"]);
});
