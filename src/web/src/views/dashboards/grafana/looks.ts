/** Kinds, thresholds and scales of Grafana's panels. Pure. */
import type { ChartPanel, Level, PanelThreshold, Reduction, ValuesKind } from "../../../api/types";
import { listOf, numberOf, objectOf, textOf, type Json } from "./parts";

const KINDS: Record<string, ValuesKind> = {
  timeseries: "chart",
  graph: "chart",
  stat: "stat",
  singlestat: "stat",
  gauge: "gauge",
  bargauge: "bars",
  barchart: "bars",
  table: "table",
  "table-old": "table",
  heatmap: "heatmap",
  "state-timeline": "states",
  "status-history": "states",
};

/** The equivalent kind; `undefined` for types without one. */
export function kindOf(panel: Json): ValuesKind | undefined {
  const type = textOf(panel["type"]);
  const isGauge = type === "singlestat" && objectOf(panel["gauge"])["show"] === true;
  return isGauge ? "gauge" : Object.hasOwn(KINDS, type) ? KINDS[type] : undefined;
}

const REDUCTIONS: Record<string, Reduction> = {
  mean: "avg",
  avg: "avg",
  min: "min",
  max: "max",
  sum: "sum",
  total: "sum",
};

const THRESHOLDS_MAX = 10;

/** The fields of a panel of this kind: its number, scale and thresholds. */
export function looksOf(panel: Json, kind: ValuesKind): Partial<ChartPanel> {
  const defaults = objectOf(objectOf(panel["fieldConfig"])["defaults"]);
  const calcs = objectOf(objectOf(panel["options"])["reduceOptions"])["calcs"];
  const calc = textOf(Array.isArray(calcs) ? calcs[0] : panel["valueName"]);
  const reduce = Object.hasOwn(REDUCTIONS, calc) ? REDUCTIONS[calc] : undefined;
  const scale = isScaled(kind) ? scaleOf(panel, defaults) : {};
  const thresholds = thresholdsOf(panel, defaults, kind, scale).slice(0, THRESHOLDS_MAX);
  return {
    ...(reduce && (isScaled(kind) || kind === "stat" || kind === "table") ? { reduce } : {}),
    ...scale,
    ...(thresholds.length > 0 ? { thresholds } : {}),
  };
}

const isScaled = (kind: ValuesKind) => kind === "gauge" || kind === "bars";

interface Scale {
  min?: number;
  max?: number;
}

function scaleOf(panel: Json, defaults: Json): Scale {
  const gauge = objectOf(panel["gauge"]);
  const min = numberOf(defaults["min"] ?? gauge["minValue"], NaN);
  const max = numberOf(defaults["max"] ?? gauge["maxValue"], NaN);
  if (min >= max) return {};
  return {
    ...(Number.isNaN(min) ? {} : { min }),
    ...(Number.isNaN(max) ? {} : { max }),
  };
}

function thresholdsOf(
  panel: Json,
  defaults: Json,
  kind: ValuesKind,
  { min = 0, max = 100 }: Scale,
): PanelThreshold[] {
  if (kind === "chart" || kind === "heatmap") {
    const style = objectOf(objectOf(defaults["custom"])["thresholdsStyle"]);
    const mode = textOf(style["mode"]);
    if (mode === "" || mode === "off") return oldLines(panel);
  }
  const found = objectOf(defaults["thresholds"]);
  const isPercentage = textOf(found["mode"]) === "percentage";
  const valueOf = (step: number) => (isPercentage ? min + ((max - min) * step) / 100 : step);
  const steps = listOf(found["steps"]).map((step) => ({
    from: numberOf(step["value"], NaN),
    level: levelOfColour(textOf(step["color"])),
  }));
  if (steps.length === 0) return oldThresholds(panel);
  return ascending(
    steps.map(({ from, level }) =>
      Number.isNaN(from) ? { level } : { from: valueOf(from), level },
    ),
  );
}

/** `thresholds: "80,90"` with three colours. */
function oldThresholds(panel: Json): PanelThreshold[] {
  const isColoured = panel["colorValue"] === true || panel["colorBackground"] === true;
  const text = textOf(panel["thresholds"]);
  const isGauge = objectOf(panel["gauge"])["show"] === true;
  if (text.trim() === "" || (!isColoured && !isGauge)) return [];
  const colours = Array.isArray(panel["colors"]) ? panel["colors"].map(textOf) : [];
  const levels = ["good", "warn", "bad"].map(
    (level, k) => (colours[k] ? levelOfColour(colours[k]) : level) as Level,
  );
  const numbers = text.split(",").map(Number).filter(Number.isFinite);
  return ascending([
    { level: levels[0] ?? "good" },
    ...numbers.map((from, k) => ({ from, level: levels[k + 1] ?? "bad" })),
  ]);
}

/** The lines of charts before Grafana 8. */
function oldLines(panel: Json): PanelThreshold[] {
  const lines = listOf(panel["thresholds"]).map((line): PanelThreshold => ({
    from: numberOf(line["value"], NaN),
    level: line["colorMode"] === "warning" ? "warn" : "bad",
  }));
  return ascending(lines.filter(({ from = 0 }) => !Number.isNaN(from)));
}

/** Only the thresholds that are larger than the one before. */
function ascending(thresholds: readonly PanelThreshold[]): PanelThreshold[] {
  const sorted = [...thresholds].sort((a, b) => (a.from ?? -Infinity) - (b.from ?? -Infinity));
  return sorted.filter(({ from }, k) => k === 0 || from !== sorted[k - 1]?.from);
}

/** The meaning of a colour, which has a name or a value. */
export function levelOfColour(colour: string): Level {
  const word = colour.toLowerCase();
  if (/green/.test(word)) return "good";
  if (/yellow|orange/.test(word)) return "warn";
  if (/red/.test(word)) return "bad";
  const [red, green, blue] = rgbOf(word);
  if (red === undefined || green === undefined || blue === undefined) return "none";
  if (Math.max(red, green, blue) - Math.min(red, green, blue) < 40) return "none";
  if (blue >= Math.max(red, green)) return "none";
  if (green > red) return "good";
  return green > red / 3 ? "warn" : "bad";
}

function rgbOf(text: string): number[] {
  const hex = /^#([0-9a-f]{6})/.exec(text)?.[1];
  if (hex) return [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const inside = /^rgba?\(([^)]*)\)/.exec(text)?.[1];
  return inside ? inside.split(",").map(Number).slice(0, 3) : [];
}
