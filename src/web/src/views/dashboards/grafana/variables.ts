/** Grafana's variables as variables of tags, or as fixed texts in expressions. */
import type { Variable } from "../../../api/types";
import { isVariableName } from "../../dashboard/draft";
import { listOf, objectOf, textOf, type Json, type Notes } from "./parts";

export interface Variables {
  list: Variable[];
  /** Replaces the variables that have no equivalent. */
  fill: (expression: string) => string;
}

const VARIABLES_MAX = 20;
const LABEL_VALUES = /^\s*label_values\(\s*(?:([\s\S]+),)?\s*(\w+)\s*\)\s*$/;
const QUERY_RESULT = /^\s*query_result\(([\s\S]+)\)\s*$/;
/** The label whose value a pattern of `query_result` extracts: `/.*host="(.*)".*\/`. */
const EXTRACTED_LABEL = /(\w+)=\\?"\(/;
const METRIC = /[a-zA-Z_:][\w:]*/;

export function readVariables(dashboard: Json, notes: Notes): Variables {
  const list: Variable[] = [];
  const fixed = new Map<string, string>();
  for (const item of listOf(objectOf(dashboard["templating"])["list"])) {
    const name = textOf(item["name"]);
    if (name === "" || textOf(item["type"]) === "datasource") continue;
    const variable = isVariableName(name) ? variableOf(name, item) : undefined;
    if (variable && list.length < VARIABLES_MAX) {
      list.push(variable);
      if (variable.isWider) notes.add("Variables list all values of their label", `$${name}`);
    } else {
      fixed.set(name, fixedText(item, notes));
    }
  }
  return {
    list: list.map(({ name, tag, metric, multi }) => ({
      name,
      tag,
      ...(metric ? { metric } : {}),
      multi,
    })),
    fill: (expression) => fillFixed(withPlainReferences(expression), fixed),
  };
}

/** A variable of a tag; `isWider` if it lists values that Grafana's query excludes. */
function variableOf(name: string, item: Json): (Variable & { isWider: boolean }) | undefined {
  if (textOf(item["type"]) !== "query") return undefined;
  const query = textOf(item["query"]) || textOf(objectOf(item["query"])["query"]);
  const multi = item["multi"] === true;
  const [, selector = "", label] = LABEL_VALUES.exec(query) ?? [];
  if (label !== undefined) {
    const isWider = /[{]/.test(selector) || textOf(item["regex"]) !== "";
    return { name, tag: label, ...metricIn(selector), multi, isWider };
  }
  const [, result] = QUERY_RESULT.exec(query) ?? [];
  const [, extracted] = EXTRACTED_LABEL.exec(textOf(item["regex"])) ?? [];
  if (result === undefined || extracted === undefined) return undefined;
  return { name, tag: extracted, ...metricIn(result), multi, isWider: true };
}

/** The metric of a plain selector. */
function metricIn(selector: string): { metric?: string } {
  const [, metric] = /^\s*([a-zA-Z_:][\w:]*)\s*(?:\{|$|[=!<>])/.exec(selector) ?? [];
  return metric && METRIC.test(metric) ? { metric } : {};
}

/** The text that replaces a variable without an equivalent. */
function fixedText(item: Json, notes: Notes): string {
  const [name, type] = [textOf(item["name"]), textOf(item["type"])];
  if (type === "interval") {
    notes.add("Intervals follow the resolution", `$${name}`);
    return "$__interval";
  }
  const current = objectOf(item["current"])["value"];
  const values = (Array.isArray(current) ? current : [current]).map(textOf);
  const isAllChosen = values.includes("$__all");
  const value = isAllChosen ? "$__all" : values.filter((text) => text !== "").join("|");
  const text = type === "constant" || type === "textbox" ? textOf(item["query"]) || value : value;
  const isAll = text === "" || text === "$__all";
  notes.add(
    "Variables without an equivalent have a fixed value",
    isAll ? `$${name} = all` : `$${name} = ${text}`,
  );
  return isAll ? ".*" : text;
}

/** Writes `${name:regex}` and `[[name]]` as `$name`. */
export function withPlainReferences(text: string): string {
  return text
    .replace(/\[\[(\w+)(?::\w+)?\]\]/g, (_, name: string) => `\${${name}}`)
    .replace(/\$\{(\w+):\w+\}/g, (_, name: string) => `\${${name}}`);
}

const MATCHER = /(=|!=)(\s*)"((?:[^"\\]|\\.)*)"/g;

/** Fills in fixed values; a matcher with several values becomes a pattern. */
function fillFixed(text: string, fixed: ReadonlyMap<string, string>): string {
  const withPatterns = text.replace(
    MATCHER,
    (whole, operator: string, space: string, value: string) => {
      const filled = fillReferences(value, fixed);
      const isPattern = filled !== value && /^\.\*$|\|/.test(filled);
      if (!isPattern) return whole;
      return `${operator === "=" ? "=~" : "!~"}${space}"${filled}"`;
    },
  );
  return fillReferences(withPatterns, fixed);
}

function fillReferences(text: string, fixed: ReadonlyMap<string, string>): string {
  return text.replace(/\$(?:\{(\w+)\}|(\w+))/g, (whole, long?: string, short?: string) => {
    return fixed.get(long ?? short ?? "") ?? whole;
  });
}
