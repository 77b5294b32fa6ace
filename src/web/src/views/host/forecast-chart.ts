/**
 * The chart of a resource that runs out: what was free, then the forecast as a dashed line with the
 * band from the quantile 0.1 to 0.9. Pure.
 */
import type { PanelQuery } from "../../api/types";
import type { ChartProps } from "../../chart/chart";
import type { ChartData, DrawnSeries } from "../../chart/data";
import type { Derive } from "../../chart/chart-spec";
import type { Values } from "../../model/stack";
import type { Choice } from "../../model/timeframe";
import type { UntilFull } from "../../model/until-full";
import { DAY } from "../../model/zone";
import { AVAILABLE, FORECAST_WINDOW, FREE, matchersOf } from "../../queries/until-full";
import { tagsOf } from "../../queries/tags";

/** The quantiles of the drawn forecast, in the order of the queries. */
const QUANTILES = [0.1, 0.5, 0.9];
/** The length before and after the forecast; slots of days are too coarse for the next days. */
const LENGTHS = { days: 21 * DAY, hours: 3 * DAY };

/** The time range and slots that show the time at which a resource runs out. */
export function forecastChoice({ median }: UntilFull, at: number, zone: string): Choice {
  const isByHour = median < LENGTHS.hours;
  const length = isByHour ? LENGTHS.hours : LENGTHS.days;
  return {
    resolution: isByHour ? "1h" : "1d",
    range: "1mo",
    fixed: { start: at - length, end: at + length },
    display: undefined,
    zone,
  };
}

export function forecastChart(
  host: string,
  { mount }: UntilFull,
  at: number,
): Omit<ChartProps, "frame"> {
  const metric = mount === undefined ? AVAILABLE : FREE;
  const tags = new Map([
    ["host", host],
    ...(mount === undefined ? [] : [["mount", mount] as const]),
  ]);
  const window = `${metric}${matchersOf(tags)}[${FORECAST_WINDOW}] @ ${at / 1000}`;
  const ahead = QUANTILES.map((quantile): PanelQuery => {
    return { kind: "promql", expression: `forecast(${window}, 0, ${quantile})` };
  });
  return {
    title: mount === undefined ? "Memory available" : `Free on ${mount}`,
    id: `forecast-${mount ?? "memory"}`,
    // The value at the start of each slot, as an expression has it.
    display: "first",
    isAhead: true,
    queries: [{ kind: "metric", metric, tags: tagsOf(tags) }, ...ahead],
    derive: withForecastAt(at, mount === undefined ? "available" : "free"),
  };
}

/** Turns the quantiles after a time into one line with a band; before it, the values are shown. */
export function withForecastAt(at: number, label: string): Derive {
  return { series: (data) => withForecast(data, at, label), expression: () => undefined };
}

function withForecast(data: ChartData, at: number, label: string): ChartData {
  const [free, ...others] = data.series;
  const [low, middle, high] = others.filter(({ display }) => display === "promql");
  if (!free || free.display === "promql" || !low || !middle || !high) return data;
  // The forecast begins at the last value, so that both lines touch.
  const joint = free.values.findLastIndex((value) => typeof value === "number");
  const ahead = ({ values }: DrawnSeries): Values =>
    values.map((value, k) => {
      if (k === joint) return free.values[k];
      const isAhead = k > joint && (data.times[k] ?? 0) > at;
      return isAhead && typeof value === "number" ? Math.max(value, 0) : null;
    });
  const forecast: DrawnSeries = {
    ...middle,
    metric: free.metric,
    tags: free.tags,
    unit: free.unit,
    label: "forecast",
    values: ahead(middle),
    band: { min: ahead(low), max: ahead(high) },
    ghostOf: free.key,
  };
  const { band: _, ...line } = free;
  const series = [{ ...line, label }, forecast];
  return { ...data, series, incompleteFrom: undefined, restingAt: at };
}
