/** A panel of single values or states: loads the results of its queries, and draws them. */
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { ChartPanel, ValuesKind } from "../../../api/types";
import type { ChartData } from "../../../chart/data";
import type { TimeFrame } from "../../../chart/frame";
import { useChartData } from "../../../chart/use-data";
import { Icon } from "../../../parts/icon";
import { expandQueries, expandTitle, type ChosenValues } from "../../../queries/variables";
import { Bars } from "./bars";
import { Gauges } from "./gauges";
import { reduceAll } from "./reduce";
import { States } from "./state-lines";
import { Stats } from "./stats";
import { ValueTable } from "./value-table";
import "./values.css";

interface Props {
  panel: ChartPanel;
  frame: TimeFrame;
  chosen: ChosenValues;
  /** Additional buttons in its head. */
  actions?: ComponentChildren;
}

export function ValuesPanel({ panel, frame, chosen, actions }: Props) {
  const queries = useMemo(() => expandQueries(panel.queries, chosen), [panel.queries, chosen]);
  const title = expandTitle(panel.title, chosen) || "Values";
  const { loader, root } = useChartData(frame, {
    id: panel.id,
    title,
    queries,
    display: panel.display,
    unit: panel.unit,
    band: false,
  });
  const data = loader.data.value;
  const error = loader.error.value ?? loader.failures.value[0];
  const isEmpty = data?.series.every(({ values }) => !values.some((v) => typeof v === "number"));
  return (
    <section class="values" aria-label={title} data-values={title} ref={root}>
      <header class="values-head">
        <h3 title={title}>{title}</h3>
        {loader.isLoading.value && !data && <span class="spinner" aria-hidden="true" />}
        {actions}
      </header>
      {error && (
        <p class="problem" role="alert">
          <Icon name="warning" /> {error.message}
        </p>
      )}
      {data && isEmpty && !error && <p class="values-none muted">No samples in this time range</p>}
      {data && !isEmpty && (
        <div class="values-body" tabIndex={0} role="group" aria-label={`Values of ${title}`}>
          <Content panel={panel} data={data} />
        </div>
      )}
    </section>
  );
}

function Content({ panel, data }: { panel: ChartPanel; data: ChartData }) {
  const { reduce, thresholds, min, max } = panel;
  const found = useMemo(() => reduceAll(data, { reduce, thresholds }), [data, reduce, thresholds]);
  switch (panel.kind) {
    case "gauge":
      return <Gauges found={found} min={min} max={max} />;
    case "bars":
      return <Bars found={found} min={min} max={max} />;
    case "table":
      return <ValueTable found={found} reduce={reduce} />;
    case "states":
      return <States data={data} thresholds={thresholds} />;
    case "stat":
    case "chart":
    case "heatmap":
      return <Stats found={found} />;
  }
}

/** True for panels that are drawn as lines or as a heat map. */
export const isChart = (kind: ValuesKind) => kind === "chart" || kind === "heatmap";
