/** The areas between lines: stacked values, and percentiles. */
import type uPlot from "uplot";
import { seriesName, type DrawnSeries } from "./data";
import { withAlpha } from "./plot-colours";
import type { PlotState } from "./plot-state";

const FILLED = { stacked: 0.55, percentiles: 0.18 };

/** Fills between each shown line and the line below. */
export function stackBands(
  lines: uPlot.Series[],
  bands: uPlot.Band[],
  { shown }: PlotState,
  looks: { colour: string }[],
): void {
  let lineBelow: number | undefined;
  for (const [k, line] of lines.entries()) {
    if (!shown[k]) continue;
    const fill = withAlpha(looks[k]?.colour ?? "#888888", FILLED.stacked);
    if (lineBelow === undefined) line.fill = fill;
    else bands.push({ series: [k + 1, lineBelow + 1], fill });
    lineBelow = k;
  }
}

/** Fills between percentiles and the next lower ones: of a single line, or of the nearest one. */
export function percentileBands(
  { data }: PlotState,
  looks: { colour: string }[],
  firstLine: number,
  near: () => number,
): uPlot.Band[] {
  const nameOf = ({ metric, tags }: DrawnSeries) => seriesName(metric, tags);
  const indexes = new Map(data.series.map(({ key }, k) => [key, k]));
  const isAlone = new Set(data.series.map(nameOf)).size === 1;
  const isFilled = (series: DrawnSeries) => {
    const nearSeries = data.series[near()];
    return isAlone || (nearSeries !== undefined && nameOf(nearSeries) === nameOf(series));
  };
  return data.series.flatMap((series, k): uPlot.Band[] => {
    const lower = indexes.get(series.lower ?? "");
    if (lower === undefined) return [];
    const colour = looks[k]?.colour ?? "#888888";
    const fill = () => withAlpha(colour, isFilled(series) ? FILLED.percentiles : 0);
    return [{ series: [firstLine + k, firstLine + lower], fill }];
  });
}
