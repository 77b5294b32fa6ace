/** A rule that is made of what a chart shows: its expression, and the file that it stands in. Pure. */
import type { Display, Kind, PanelQuery } from "../api/types";
import { outermost } from "../model/comparison";
import { isPlain, quantityOf } from "../model/quantity";
import type { Unit } from "../model/units";
import { namesOf, selectionOf } from "../queries/tags";

export const OPERATORS = [">", ">=", "<", "<="] as const;
export const SEVERITIES = ["", "info", "warning", "critical"] as const;

export interface RuleDraft {
  name: string;
  /** What is compared. */
  expression: string;
  operator: (typeof OPERATORS)[number];
  /** The threshold as it is written: `0.9`, `5GB`. */
  value: string;
  /** The unit of what is compared, where it is known. */
  unit?: Unit | undefined;
  /** `5m`; none where it is empty. */
  lasting: string;
  severity: string;
  summary: string;
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/** The series of a query, as PromQL selects them. */
function selectorOf(metric: string, tags: string): string {
  const isPlain = NAME.test(metric);
  const pairs = [...selectionOf(tags)].map(
    ([name, value]) => `${LABEL.test(name) ? name : JSON.stringify(name)}=${JSON.stringify(value)}`,
  );
  const inside = [...(isPlain ? [] : [JSON.stringify(metric)]), ...pairs].join(",");
  return `${isPlain ? metric : ""}${inside ? `{${inside}}` : ""}`;
}

export interface Drawn {
  kind: Kind | undefined;
  display: Display | undefined;
}

/** What a query draws as an expression of the same numbers. */
export function expressionOf(query: PanelQuery, { kind, display }: Drawn): string {
  if (query.kind === "promql") return query.expression.trim();
  const selector = selectorOf(query.metric, query.tags);
  const isCounted = kind === "counter" || kind === "delta";
  const isTotal = display === "total" || (kind === "delta" && display !== "avg_per_sec");
  const each = isCounted ? `${isTotal ? "increase" : "rate"}(${selector}[5m])` : selector;
  const names = namesOf(query.group_by);
  if (names.length === 0 && !query.merge) return each;
  const by = names.length > 0 ? ` by (${names.join(", ")}) ` : "";
  return `${isCounted ? "sum" : "avg"}${by}(${each})`;
}

/** Words as the name of an alert: `Network received` is `NetworkReceived`. */
export function nameOfAlert(title: string): string {
  const words = title.match(/[\p{L}\p{N}]+/gu) ?? [];
  return words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join("") || "Alert";
}

/** What is wrong with it before the daemon is asked; `undefined` when nothing. */
export function faultOf({ name, expression, value, unit, lasting }: RuleDraft): string | undefined {
  if (name.trim() === "") return "Give the alert a name.";
  if (expression.trim() === "") return "Give an expression.";
  const threshold = quantityOf(value, unit);
  if ("fault" in threshold) return threshold.fault;
  const isLength = /^(\d+(ms|s|m|h|d|w|y))+$/.test(lasting.trim());
  return lasting.trim() === "" || isLength ? undefined : "Write how long it lasts as 5m or 1h30m.";
}

/** A comparison binds tighter than what joins series. */
function inBrackets(expression: string): string {
  const text = expression.trim();
  return /\b(and|or|unless|bool)\b|[<>=]/i.test(outermost(text)) ? `(${text})` : text;
}

/** The threshold as PromQL has it: as it is written, unless it has a unit. */
export function thresholdOf({ value, unit }: Pick<RuleDraft, "value" | "unit">): string {
  const text = value.trim();
  const threshold = quantityOf(text, unit);
  return "value" in threshold && !isPlain(text) ? String(threshold.value) : text;
}

export function comparedOf(draft: RuleDraft): string {
  return `${inBrackets(draft.expression)} ${draft.operator} ${thresholdOf(draft)}`;
}

/** A rule file with this rule alone, in Prometheus' format. */
export function ruleFile(draft: RuleDraft): string {
  const { name, lasting, severity, summary } = draft;
  const lines = [
    "groups:",
    `- name: ${JSON.stringify(name.trim())}`,
    "  rules:",
    `  - alert: ${JSON.stringify(name.trim())}`,
    `    expr: ${JSON.stringify(comparedOf(draft))}`,
    ...(lasting.trim() === "" ? [] : [`    for: ${lasting.trim()}`]),
    ...(severity === "" ? [] : ["    labels:", `      severity: ${severity}`]),
    ...(summary.trim() === ""
      ? []
      : ["    annotations:", `      summary: ${JSON.stringify(summary.trim())}`]),
  ];
  return `${lines.join("\n")}\n`;
}
