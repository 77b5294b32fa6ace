/** Texts about a series at one slot. */
import { valueText } from "../model/units";
import type { ChartData, DrawnSeries } from "./data";
import { bandText, type RowValue } from "./legend";

/** The values of a legend's row. */
export function rowValue(series: DrawnSeries | undefined, index: number): RowValue | undefined {
  if (!series) return undefined;
  const { values, band } = series;
  return { value: values[index], ...(band && { min: band.min[index], max: band.max[index] }) };
}

/** The value in the box next to the pointer. */
export function tipText(series: DrawnSeries | undefined, index: number): string {
  return series ? valueText(series.values[index], series.unit) : "";
}

/** The band of the nearest series, in the box next to the pointer; empty when it has no width. */
export function tipBand(series: DrawnSeries | undefined, index: number): string {
  const { band, unit } = series ?? {};
  if (!series || !band || !unit || band.min[index] === band.max[index]) return "";
  const text = bandText(rowValue(series, index) ?? { value: undefined }, unit);
  return text === "" ? "" : `Nearest, min to max: ${text}`;
}

/** The maximum number of values of another chart in the box next to the pointer. */
const LARGEST_MAX = 3;

/** The largest values of the slot at a time: `java 85 %, mongod 12 %`; units stay on their line. */
export function largestText({ times, series }: ChartData, time: number): string {
  const index = times.findLastIndex((start) => start <= time);
  const at = ({ values }: DrawnSeries) => values[index] ?? 0;
  return series
    .filter((line) => at(line) > 0)
    .sort((a, b) => at(b) - at(a))
    .slice(0, LARGEST_MAX)
    .map((line) => `${line.label} ${tipText(line, index).replaceAll(" ", "\u00a0")}`)
    .join(", ");
}

/** The text for screen readers: `web1 12 MiB, from 10 MiB to 18 MiB`. */
export function spokenText(series: DrawnSeries, index: number): string {
  const { label, values, band, unit } = series;
  const text = `${label} ${valueText(values[index], unit)}`;
  if (!band || typeof values[index] !== "number") return text;
  return `${text}, from ${valueText(band.min[index], unit)} to ${valueText(band.max[index], unit)}`;
}
