/** Service level objectives: the rules that the daemon expanded, with their newest values. Pure. */
import type { PromqlVector, RuleGroup, Tags } from "../../api/types";
import { rankOfSeverity, severityOf } from "./listed";

/** The metrics that the rules of each SLO record. */
export const TARGET = "slo:target";
export const BUDGET_LEFT = "slo:budget_left";
export const BURN_RATE = "slo:burn_rate";

/** The newest values of all SLOs in one answer. */
export const SLO_VALUES = `{__name__=~"${TARGET}|${BUDGET_LEFT}|${BURN_RATE}"}`;

/** A budget below this share needs attention. */
const LOW_BUDGET = 0.25;

/** An SLO with its series; one series without labels of its own is usual. */
export interface Slo {
  name: string;
  /** The window of the budget, as in the file: `30d`. */
  window: string;
  group: RuleGroup;
  /** The share of good events; `undefined` before the first evaluation. */
  target: number | undefined;
  /** The series, the one with the least budget first; none without events. */
  series: SloSeries[];
  limits: BurnLimit[];
  /** The error of a failing rule. */
  error: string | undefined;
  /** The severity of the worst alert that fires. */
  firing: string | undefined;
}

export interface SloSeries {
  /** The labels that distinguish the series. */
  tags: Tags;
  /** The share of the error budget that is left, negative when it is overspent. */
  budgetLeft: number;
  /** The share of good events in the window. */
  good: number | undefined;
  /** The burn rate in each window. */
  burns: Map<string, number>;
}

/** An alert fires when the burn rates in both windows exceed the rate. */
export interface BurnLimit {
  severity: string;
  rate: number;
  long: string;
  short: string;
}

/** A pair of windows in the expression of an alert. */
const PAIR = /window="(\w+)"\} > ([\d.]+) and ignoring \(window\) [^}]*window="(\w+)"\}/g;

function limitsOf(group: RuleGroup): BurnLimit[] {
  return group.rules.flatMap((rule) => {
    if (rule.type !== "alerting") return [];
    return [...rule.query.matchAll(PAIR)].map(([, long = "", rate, short = ""]) => ({
      severity: severityOf(rule),
      rate: Number(rate),
      long,
      short,
    }));
  });
}

/** The SLOs of the rules, the one with the least budget first. */
export function slosOf(groups: readonly RuleGroup[], vector: PromqlVector | undefined): Slo[] {
  const bySlo = new Map<string, PromqlVector["result"]>();
  for (const sample of vector?.result ?? []) {
    const name = sample.metric["slo"] ?? "";
    const samples = bySlo.get(name);
    if (samples) samples.push(sample);
    else bySlo.set(name, [sample]);
  }
  const slos = groups.flatMap((group) => {
    const rule = group.rules.find(({ name }) => name === TARGET);
    const name = rule?.labels["slo"];
    if (!rule || name === undefined) return [];
    const found = bySlo.get(name) ?? [];
    const targets = found.filter(({ metric }) => metric["__name__"] === TARGET);
    const target = targets[0]?.value && Number(targets[0].value[1]);
    const window = rule.labels["window"] ?? "";
    const firing = group.rules
      .filter((rule) => rule.type === "alerting" && rule.state === "firing")
      .map(severityOf)
      .sort((a, b) => rankOfSeverity(a) - rankOfSeverity(b));
    return {
      name,
      window,
      group,
      target,
      series: seriesOf(found, { window, target, shared: rule.labels }),
      limits: limitsOf(group),
      error: group.rules.find(({ health }) => health === "err")?.lastError,
      firing: firing[0],
    };
  });
  const left = ({ series }: Slo) => series[0]?.budgetLeft ?? Infinity;
  // Infinity minus Infinity is no order.
  return slos.sort((a, b) => (left(a) === left(b) ? 0 : left(a) - left(b)));
}

interface Terms {
  window: string;
  target: number | undefined;
  /** The labels of all series of the SLO. */
  shared: Tags;
}

function seriesOf(found: PromqlVector["result"], { window, target, shared }: Terms): SloSeries[] {
  const series = new Map<string, SloSeries>();
  for (const { metric, value } of found) {
    const name = metric["__name__"];
    if (value === undefined || name === TARGET) continue;
    const own = Object.entries(metric).filter(
      ([label]) => label !== "__name__" && label !== "window" && !(label in shared),
    );
    const key = JSON.stringify(own.sort());
    const entry = series.get(key) ?? {
      tags: Object.fromEntries(own),
      budgetLeft: NaN,
      good: undefined,
      burns: new Map<string, number>(),
    };
    const number = Number(value[1]);
    if (name === BUDGET_LEFT) entry.budgetLeft = number;
    else entry.burns.set(metric["window"] ?? "", number);
    series.set(key, entry);
  }
  const listed = [...series.values()].filter(({ budgetLeft }) => Number.isFinite(budgetLeft));
  for (const entry of listed) {
    const burn = entry.burns.get(window);
    if (target !== undefined && burn !== undefined) entry.good = 1 - burn * (1 - target);
  }
  return listed.sort((a, b) => a.budgetLeft - b.budgetLeft);
}

/** True if both windows burn faster than the limit. */
export function isExceeded({ burns }: SloSeries, { long, short, rate }: BurnLimit): boolean {
  return (burns.get(long) ?? 0) > rate && (burns.get(short) ?? 0) > rate;
}

export function budgetLevel(left: number): "" | "warn" | "bad" {
  return left <= 0 ? "bad" : left < LOW_BUDGET ? "warn" : "";
}

/** `82 % left`, `35 % overspent` */
export function budgetText(left: number): string {
  return left < 0
    ? `${shareText(-left, 0)} overspent`
    : `${shareText(left, left < 0.1 ? 1 : 0)} left`;
}

/** `99.93 %`: rounded down, so that a share below 1 is never 100 %. */
export function shareText(share: number, digits = 3): string {
  const factor = 10 ** (digits + 2);
  // 0.999 * 100000 is slightly less than 99900.
  const floor = Math.floor(share * factor + 1e-6) / 10 ** digits;
  return `${floor.toLocaleString("en", { maximumFractionDigits: digits })} %`;
}

/** `14.4`, `0.52`, `1,000` */
export function burnText(rate: number | undefined): string {
  if (rate === undefined) return "–";
  return rate.toLocaleString("en", {
    maximumSignificantDigits: rate >= 100 ? 4 : rate >= 10 ? 3 : 2,
  });
}
