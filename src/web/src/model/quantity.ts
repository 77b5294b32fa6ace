/** Numbers with units as people write them: `5GB`, `90%`, `250ms`. Pure. */
import { NONE, type Unit } from "./units";

/** The kind of quantity that a suffix measures. */
type Measure = "bytes" | "time" | "percent" | "count";

interface Suffix {
  measure: Measure;
  /** The factor to the base unit: bytes, seconds, percent or plain numbers. */
  factor: number;
}

const PREFIXES = ["", "k", "M", "G", "T", "P", "E"];

const SUFFIXES = new Map<string, Suffix>([
  ...PREFIXES.flatMap((prefix, power): [string, Suffix][] => [
    [`${prefix}B`, { measure: "bytes", factor: 1000 ** power }],
    ...(power === 0
      ? []
      : ([
          [`${prefix.toUpperCase()}iB`, { measure: "bytes", factor: 1024 ** power }],
          [`${prefix.toUpperCase()}B`, { measure: "bytes", factor: 1000 ** power }],
          [prefix, { measure: "count", factor: 1000 ** power }],
        ] as [string, Suffix][])),
  ]),
  ["KB", { measure: "bytes", factor: 1000 }],
  ["K", { measure: "count", factor: 1000 }],
  ["%", { measure: "percent", factor: 1 }],
  ...["ns", "us", "µs", "μs", "ms"].map((name): [string, Suffix] => {
    const factor = { ns: 1e-9, ms: 1e-3 }[name] ?? 1e-6;
    return [name, { measure: "time", factor }];
  }),
  ["s", { measure: "time", factor: 1 }],
  ["min", { measure: "time", factor: 60 }],
  ["m", { measure: "time", factor: 60 }],
  ["h", { measure: "time", factor: 3600 }],
  ["d", { measure: "time", factor: 86_400 }],
]);

/** The factor from a measure's base unit to the API's unit. */
const UNIT_FACTORS: Record<Exclude<Measure, "count">, Record<string, number>> = {
  bytes: { bytes: 1, byte: 1, B: 1, By: 1, kilobytes: 1e-3, kibibytes: 1 / 1024 },
  time: {
    seconds: 1,
    second: 1,
    s: 1,
    milliseconds: 1e3,
    ms: 1e3,
    microseconds: 1e6,
    us: 1e6,
    nanoseconds: 1e9,
    ns: 1e9,
  },
  percent: { percent: 1, "%": 1, ratio: 0.01 },
};

const MEASURE_NAMES: Record<Measure, string> = {
  bytes: "bytes",
  time: "a time",
  percent: "percent",
  count: "a number",
};

export type Quantity = { value: number } | { fault: string };

const FORM_HINT = "Enter the threshold as a number with an optional unit: 0.9, 5GB, 90%, 250ms.";

/** Returns true if a text is a number without a suffix. */
export function isPlainNumber(text: string): boolean {
  return text !== "" && Number.isFinite(Number(text));
}

/** Converts a number with a suffix to the expression's unit, which is `undefined` when unknown. */
export function quantityOf(text: string, unit: Unit | undefined): Quantity {
  const trimmed = text.trim();
  if (isPlainNumber(trimmed)) return { value: Number(trimmed) };
  const match = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([a-zA-Zµμ%]+?)(\/s)?$/i.exec(trimmed);
  const suffix = SUFFIXES.get(match?.[2] ?? "");
  if (!match) return { fault: FORM_HINT };
  if (!suffix) return { fault: `“${match[2] ?? ""}” is not a known unit. ${FORM_HINT}` };
  const scale = scaleTo(suffix.measure, unit, match[3] !== undefined);
  if (typeof scale === "string") return { fault: scale };
  // The nearest short decimal: 0.29 * 100 is not 29.
  return { value: Number((Number(match[1]) * suffix.factor * scale).toPrecision(15)) };
}

/** The factor from a measure's base unit to the expression's unit, or the error message. */
function scaleTo(measure: Measure, unit: Unit | undefined, isPerSecond: boolean): number | string {
  if (isPerSecond && unit && !unit.perSecond)
    return "The expression is not a rate: enter the threshold without /s.";
  if (measure === "count") return 1;
  if (!unit || NONE.includes(unit.word)) {
    return measure === "percent"
      ? "The unit of this expression is unknown: write 90 or 0.9, not 90%."
      : 1;
  }
  // Seconds per second are a share of the time.
  const isShare = unit.perSecond && Object.hasOwn(UNIT_FACTORS.time, unit.word);
  if (measure === "percent" && isShare) return 0.01 * (UNIT_FACTORS.time[unit.word] ?? 1);
  const scale = Object.hasOwn(UNIT_FACTORS[measure], unit.word)
    ? UNIT_FACTORS[measure][unit.word]
    : undefined;
  return (
    scale ??
    `The expression is in ${unit.word}, not ${MEASURE_NAMES[measure]}: enter the threshold in ${unit.word}.`
  );
}
