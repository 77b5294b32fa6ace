/** The state that a plot shows. */
import type { Window } from "../model/timeframe";
import type { ChartData } from "./data";
import type { Marks } from "./marks";

export interface PlotState {
  data: ChartData;
  window: Window;
  /** The index of each series in the palette. */
  paletteIndexes: number[];
  /** True for each series that is shown. */
  shown: boolean[];
  stacked: boolean;
  /** True for a heat map of the shown series and the rest. */
  heat: boolean;
  /** True if a heat map also counts series without lines; false when the reader chose series. */
  hasRest: boolean;
  log: boolean;
  /** The end of the axis, unless values exceed it. */
  axisTop: number | undefined;
  dark: boolean;
  marks: Marks;
  /** Returns true if the reader is reading a value, so that the axis must not move. */
  isReading: () => boolean;
}
