/** What a plot shows. */
import type { Window } from "../model/timeframe";
import type { ChartData } from "./data";
import type { Marks } from "./marks";

export interface Shown {
  data: ChartData;
  window: Window;
  /** Place of each series in the palette. */
  places: number[];
  /** Whether each series is shown. */
  shown: boolean[];
  stacked: boolean;
  log: boolean;
  /** Where the axis ends, unless numbers are beyond. */
  axisTop: number | undefined;
  dark: boolean;
  marks: Marks;
  /** Whether the axis must not move under somebody who reads a value. */
  isRead: () => boolean;
}
