/** Texts about a series at one slot. */
import { valueText } from "../model/units";
import type { DrawnSeries } from "./data";
import type { RowValue } from "./legend";

/** The values of a legend's row. */
export function rowValue(series: DrawnSeries | undefined, place: number): RowValue | undefined {
  if (!series) return undefined;
  const { values, band } = series;
  return { value: values[place], ...(band && { min: band.min[place], max: band.max[place] }) };
}

/** The text for screen readers: `web1 12 MiB, from 10 MiB to 18 MiB`. */
export function spokenText(series: DrawnSeries, place: number): string {
  const { label, values, band, unit } = series;
  const text = `${label} ${valueText(values[place], unit)}`;
  if (!band || typeof values[place] !== "number") return text;
  return `${text}, from ${valueText(band.min[place], unit)} to ${valueText(band.max[place], unit)}`;
}
