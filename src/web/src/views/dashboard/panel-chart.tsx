/** The chart of a panel, on the dashboard and as the preview of its editor. */
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { ChartPanel } from "../../api/types";
import { Chart } from "../../chart/chart";
import type { Failure } from "../../chart/data";
import type { TimeFrame } from "../../chart/frame";
import { expandQueries, type ChosenValues } from "../../queries/variables";
import { thresholdLines } from "./thresholds";

interface Props {
  id: string;
  title: string;
  panel: ChartPanel;
  frame: TimeFrame;
  chosen: ChosenValues;
  /** Additional buttons in its head. */
  actions?: ComponentChildren;
  onFailures?: (failures: Failure[]) => void;
}

export function PanelChart({ panel, chosen, ...props }: Props) {
  const queries = useMemo(() => expandQueries(panel.queries, chosen), [panel.queries, chosen]);
  return (
    <Chart
      {...props}
      queries={queries}
      display={panel.display}
      stacked={panel.stacked}
      log={panel.log}
      unit={panel.unit}
      thresholds={thresholdLines(panel)}
      heat={panel.kind === "heatmap"}
      fill
    />
  );
}
