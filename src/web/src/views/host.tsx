/** A host: its properties, and charts of all its metrics. */
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { api } from "../api/client";
import { useResource } from "../api/resource";
import type { SeriesEntry } from "../api/types";
import { address } from "../app/address";
import { useSteady } from "../app/steady";
import { Chart } from "../chart/chart";
import { TimeControls } from "../chart/controls";
import { useTimeFrame, type TimeFrame } from "../chart/frame";
import { loadEarly } from "../chart/load";
import { MovedLink } from "../chart/moved-link";
import { rememberSeries } from "../chart/load-metrics";
import { dataSpecOf, specOf } from "../chart/chart-spec";
import { escapeReordering } from "../model/harmless";
import { AnnotateButton } from "../parts/annotate";
import { Empty, Failed, Loading } from "../parts/states";
import { ForecastCharts, useForecast, type HostForecast } from "./host/until-full";
import { AllMetrics } from "./host/all-metrics";
import { HostHead } from "./host/head";
import { FIRST_METRICS, sectionsOf, tagsOfHost } from "./host/sections";
import "../styles/tiles.css";
import "./host/host.css";

const NONE: SeriesEntry[] = [];
/** The interval of checking for new metrics of a host. */
const SERIES_EVERY_MS = 60_000;

export function HostView() {
  const name = nameIn(address.value.path);
  return <Host key={name} name={name} />;
}

function nameIn(path: string): string {
  const part = path.split("/")[2] ?? "";
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function Host({ name }: { name: string }) {
  const frame = useTimeFrame({ annotationTags: tagsOfHost(name) }, name);
  useEffect(() => {
    document.title = escapeReordering(`${name} · Granary`);
  }, [name]);
  const forecast = useForecast(name);
  return (
    <>
      <HostHead name={name} forecast={forecast}>
        <MovedLink frame={frame} tags={tagsOfHost(name)} />
        <AnnotateButton frame={frame} tags={tagsOfHost(name)} />
      </HostHead>
      <TimeControls frame={frame} />
      <Metrics frame={frame} name={name} forecast={forecast.data} />
    </>
  );
}

/** Requests the charts at the top before the metrics are known: most hosts send their metrics. */
function requestEarly(frame: TimeFrame, name: string): void {
  const { display: frameDisplay } = frame.choice.peek();
  for (const chart of sectionsOf(name, FIRST_METRICS).flatMap(({ charts }) => charts)) {
    loadEarly({ ...dataSpecOf(specOf(chart)), window: frame.window.peek(), frameDisplay });
  }
}

interface MetricsProps {
  frame: TimeFrame;
  name: string;
  forecast: HostForecast | undefined;
}

function Metrics({ frame, name, forecast }: MetricsProps) {
  const { data, error, reload } = useResource(
    `series ${name}`,
    async (signal) => {
      const tags = tagsOfHost(name);
      const answer = await api.series({ tags }, signal);
      rememberSeries(tags, answer.series);
      return answer;
    },
    { everyMs: SERIES_EVERY_MS },
  ).value;
  // Rendering sends the requests before it draws, but after the request for the series: all charts
  // need the series, and a browser sends six requests at a time.
  useMemo(() => requestEarly(frame, name), [frame]);
  const series = useSteady(data?.series ?? NONE);
  const metrics = useMemo(() => new Set(series.map(({ metric }) => metric)), [series]);
  const sections = useMemo(() => sectionsOf(name, metrics), [name, metrics]);
  // The first paint contains only the visible charts; the next paint adds the rest.
  const isWhole = useSignal(false);
  const hasSections = sections.length > 0;
  useEffect(() => {
    if (hasSections) isWhole.value = true;
  }, [hasSections]);
  if (!data) {
    if (!error) return <Loading what="what this host sends" />;
    return <Failed message={`Cannot load the host: ${error.message}`} onRetry={reload} />;
  }
  if (series.length === 0) {
    return (
      <Empty title="No samples of this host">
        <p>No series has the tag host={name}.</p>
      </Empty>
    );
  }
  return (
    <>
      {(isWhole.value ? sections : sections.slice(0, 1)).map(({ title, charts }) => (
        <section key={title}>
          <h2 class="section-title">{title}</h2>
          <div class="charts">
            {charts.map((chart) => (
              <Chart key={chart.title} frame={frame} {...chart} />
            ))}
          </div>
        </section>
      ))}
      {isWhole.value && forecast && <ForecastCharts name={name} forecast={forecast} />}
      {(isWhole.value || !hasSections) && (
        <AllMetrics frame={frame} name={name} series={series} isOpen={!hasSections} />
      )}
    </>
  );
}
