/** Filters and order of listed alerts and rules. Pure. */
import type { Alert, AlertingRule, Rule, RuleGroup, Tags } from "../../api/types";

/** An alert with its rule. */
export interface ListedAlert {
  key: string;
  alert: Alert;
  rule: AlertingRule;
  group: RuleGroup;
}

export function isSilenced({ alert }: Pick<ListedAlert, "alert">): boolean {
  return (alert.silencedBy ?? []).length > 0;
}

/** Severities, the worst first; unknown severities come last. */
const SEVERITIES = ["critical", "page", "error", "high", "warning", "warn", "info"];

export function severityOf({ labels }: { labels: Tags }): string {
  return labels["severity"] ?? "";
}

/** The rank of a severity: 0 is the worst. */
export function rankOfSeverity(name: string): number {
  const place = SEVERITIES.indexOf(name.toLowerCase());
  return place < 0 ? SEVERITIES.length : place;
}

/** True if alerts of the severity need somebody now. */
export const isUrgent = (name: string) => rankOfSeverity(name) < SEVERITIES.indexOf("warning");

const rankOf = (alert: Alert) => rankOfSeverity(severityOf(alert));

export function alertsOf(groups: readonly RuleGroup[]): ListedAlert[] {
  const listed = groups.flatMap((group) =>
    group.rules.flatMap((rule) =>
      rule.type === "recording"
        ? []
        : (rule.alerts ?? []).map((alert) => ({
            key: JSON.stringify([group.file, group.name, alert.labels]),
            alert,
            rule,
            group,
          })),
    ),
  );
  return listed.sort(compareAlerts);
}

/** Sorts alerts: firing before pending, then by severity, then the newest first. */
function compareAlerts(a: ListedAlert, b: ListedAlert): number {
  const state = (row: ListedAlert) => (isSilenced(row) ? 2 : row.alert.state === "firing" ? 0 : 1);
  return (
    state(a) - state(b) ||
    rankOf(a.alert) - rankOf(b.alert) ||
    Date.parse(b.alert.activeAt) - Date.parse(a.alert.activeAt) ||
    (a.key < b.key ? -1 : 1)
  );
}

/** The severities of alerts with their numbers, the worst first. */
export function severitiesOf(listed: readonly ListedAlert[]): { name: string; count: number }[] {
  const counts = new Map<string, number>();
  for (const { alert } of [...listed].sort((a, b) => rankOf(a.alert) - rankOf(b.alert))) {
    const name = severityOf(alert);
    if (name !== "") counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].map(([name, count]) => ({ name, count }));
}

/** The alerts of a rule that are listed together. */
export interface AlertGroup {
  key: string;
  /** The rule's name for a folded group; `undefined` for alerts that are listed one by one. */
  name: string | undefined;
  alerts: ListedAlert[];
}

/** Up to this number, alerts of a rule are listed one by one; more are one folded line. */
const SINGLE_MAX = 3;

/** Groups alerts by rule, each at the place of its first alert; few alerts stay on their own. */
export function groupsOf(listed: readonly ListedAlert[]): AlertGroup[] {
  const byRule = new Map<AlertingRule, ListedAlert[]>();
  for (const row of listed) {
    const alerts = byRule.get(row.rule);
    if (alerts) alerts.push(row);
    else byRule.set(row.rule, [row]);
  }
  const groups: AlertGroup[] = [];
  for (const row of listed) {
    const alerts = byRule.get(row.rule) ?? [];
    if (alerts.length > SINGLE_MAX) {
      if (alerts[0] === row) groups.push({ key: row.key, name: row.rule.name, alerts });
      continue;
    }
    const last = groups.at(-1);
    if (last && last.name === undefined) last.alerts.push(row);
    else groups.push({ key: row.key, name: undefined, alerts: [row] });
  }
  return groups;
}

/** The labels that all alerts have in common: a silence of them covers all these alerts. */
export function commonLabels(listed: readonly ListedAlert[]): Tags {
  const [first, ...others] = listed.map(({ alert }) => alert.labels);
  return Object.fromEntries(
    Object.entries(first ?? {}).filter(([name, value]) =>
      others.every((labels) => labels[name] === value),
    ),
  );
}

/** The alerts of a host that fire and are not silenced. */
export function firingOn(listed: readonly ListedAlert[], host: string): ListedAlert[] {
  return listed.filter(
    (row) => row.alert.state === "firing" && !isSilenced(row) && row.alert.labels["host"] === host,
  );
}

/** The search for the alerts with exactly this value of a label. */
export function exactSearch(name: string, value: string): string {
  return `${name}="${value}"`;
}

/** A word in quotes, `host="web 1"`, is a whole label; other words occur anywhere. */
const SEARCHED_WORD = /[^\s="]+="[^"]*"|\S+/g;
const EXACT_WORD = /^([^\s="]+)="([^"]*)"$/;

/** The alerts in a state whose labels and annotations contain all words of a text. */
export function filterAlerts(
  listed: readonly ListedAlert[],
  text: string,
  state: string,
  severities: readonly string[] = [],
): ListedAlert[] {
  const words = text.toLowerCase().match(SEARCHED_WORD) ?? [];
  return listed.filter((row) => {
    const { alert } = row;
    const shownState = isSilenced(row) ? "silenced" : alert.state;
    if (state !== "" && state !== shownState) return false;
    if (severities.length > 0 && !severities.includes(severityOf(alert))) return false;
    const texts = [...Object.entries(alert.labels), ...Object.entries(alert.annotations)];
    const lines = texts.map(([name, value]) => `${name}=${value}`.toLowerCase());
    const all = lines.join("\n");
    return words.every((word) => {
      const [, name, value] = EXACT_WORD.exec(word) ?? [];
      return name === undefined ? all.includes(word) : lines.includes(`${name}=${value ?? ""}`);
    });
  });
}

/** The severities in a parameter of the address, separated by commas. */
export function chosenSeverities(param: string): string[] {
  return param.split(",").filter(Boolean);
}

/** The parameter after a click on a severity, which chooses it or removes it. */
export function withSeverity(param: string, name: string): string {
  const chosen = chosenSeverities(param);
  const others = chosen.filter((severity) => severity !== name);
  return (others.length < chosen.length ? others : [...chosen, name]).join(",");
}

/** The labels that distinguish an alert from others of its rule. */
export function ownLabels({
  alert,
  rule,
}: Pick<ListedAlert, "alert" | "rule">): [string, string][] {
  return Object.entries(alert.labels)
    .filter(([name]) => name !== "alertname" && name !== "severity" && !(name in rule.labels))
    .sort(([a], [b]) => (a < b ? -1 : 1));
}

/** The rules of a group that have the name of a rule, such as one for each severity. */
export function namesakes(group: RuleGroup, name: string): Rule[] {
  return group.rules.filter((rule) => rule.name === name);
}

/**
 * The rule's name in the address: `group/rule`. Rules with the same name have their severity behind
 * it, which stays when rules are added, or their number if severities do not distinguish them.
 */
export function nameOfRule(group: RuleGroup, rule: Rule): string {
  const same = namesakes(group, rule.name);
  if (same.length === 1) return `${group.name}/${rule.name}`;
  const severities = same.map(severityOf);
  const areDistinct = !severities.includes("") && new Set(severities).size === same.length;
  const ending = areDistinct ? severityOf(rule) : String(same.indexOf(rule) + 1);
  return `${group.name}/${rule.name}/${ending}`;
}

/** The rule that the address names; of rules with the same name, by default the first. */
export function ruleNamed(groups: readonly RuleGroup[], name: string) {
  const all = groups.flatMap((group) => group.rules.map((rule) => ({ group, rule })));
  return (
    all.find(({ group, rule }) => nameOfRule(group, rule) === name) ??
    all.find(({ group, rule }) => {
      const number = namesakes(group, rule.name).indexOf(rule) + 1;
      return name === `${group.name}/${rule.name}/${number}`;
    }) ??
    all.find(({ group, rule }) => name === `${group.name}/${rule.name}`)
  );
}

/** The instant of a text; `undefined` for never, which Prometheus writes as the year 1. */
export function instantOf(text: string): number | undefined {
  const at = Date.parse(text);
  return Number.isNaN(at) || at < 0 ? undefined : at;
}

/** `1.5`, `12.3k`: a value without a known unit. */
export function valueText(text: string): string {
  const value = text === "+Inf" ? Infinity : text === "-Inf" ? -Infinity : Number(text);
  if (!Number.isFinite(value)) return text;
  const size = Math.abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-4)) return value.toExponential(2);
  return value.toLocaleString("en", { maximumSignificantDigits: size >= 1000 ? 6 : 4 });
}
