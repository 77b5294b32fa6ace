/** A host: what it says of itself, and charts of all that it sends. */
import { useMemo } from "preact/hooks";
import { api } from "../api/client";
import { useResource } from "../api/resource";
import { address } from "../app/address";
import { Chart } from "../chart/chart";
import { TimeControls } from "../chart/controls";
import { useTimeFrame, type TimeFrame } from "../chart/frame";
import { Empty, Failed, Loading } from "../parts/states";
import { sectionsOf, tagsOf } from "./host/sections";

export function HostView() {
  const name = decodeURIComponent(address.value.path.split("/")[2] ?? "");
  return <Host key={name} name={name} />;
}

function Host({ name }: { name: string }) {
  const frame = useTimeFrame({ annotationTags: tagsOf(name) }, name);
  const series = useResource(
    name,
    (signal) => api.series({ tags: tagsOf(name) }, signal),
    60_000,
  ).value;
  const names = series.data?.series.map(({ metric }) => metric).join("\n");
  const metrics = useMemo(() => new Set(names?.split("\n") ?? []), [names]);
  return (
    <>
      <div class="head">
        <h1>{name}</h1>
      </div>
      <TimeControls frame={frame} />
      {series.data ? (
        <Sections frame={frame} name={name} metrics={metrics} />
      ) : series.error ? (
        <Failed message={series.error.message} />
      ) : (
        <Loading />
      )}
    </>
  );
}

interface SectionsProps {
  frame: TimeFrame;
  name: string;
  metrics: ReadonlySet<string>;
}

function Sections({ frame, name, metrics }: SectionsProps) {
  const sections = useMemo(() => sectionsOf(name, metrics), [name, metrics]);
  if (metrics.size === 0) return <Empty title="This host has sent no samples" />;
  return (
    <>
      {sections.map(({ title, charts }) => (
        <section key={title}>
          <h2 class="section-title">{title}</h2>
          <div class="charts">
            {charts.map((chart) => (
              <Chart key={chart.title} frame={frame} {...chart} />
            ))}
          </div>
        </section>
      ))}
    </>
  );
}
