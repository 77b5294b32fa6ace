/**
 * Every metric of a host, grouped by the first word of its name; the charts of a group are created
 * when it is opened.
 */
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { SeriesEntry } from "../../api/types";
import { href, param } from "../../app/address";
import { Chart } from "../../chart/chart";
import type { TimeFrame } from "../../chart/frame";
import { writeChoice } from "../../model/timeframe";
import { countWithNoun } from "../../model/words";
import { Icon } from "../../parts/icon";
import { Search } from "../../parts/search";
import { groupsOf, matching, type Group, type MetricCount } from "./groups";
import { tagsOfHost } from "./sections";

/** The maximum number of charts of a group at first, and of lines of a chart. */
const CHARTS_MAX = 24;
const LINES_MAX = 20;

interface AllMetricsProps {
  frame: TimeFrame;
  name: string;
  series: readonly SeriesEntry[];
  /** True if the first groups are open, because the view has no other charts. */
  isOpen: boolean;
}

const search = param("metrics");

export function AllMetrics({ frame, name, series, isOpen }: AllMetricsProps) {
  const groups = useMemo(() => groupsOf(series), [series]);
  const text = search.value;
  const found = matching(groups, text);
  const count = found.reduce((sum, { metrics }) => sum + metrics.length, 0);
  return (
    <section aria-label="All metrics of this host">
      <div class="head section-title">
        <h2>All metrics of this host</h2>
        <span class="muted num">{countWithNoun(count, "metric")}</span>
        <Search label="Search metrics" placeholder="Metric name" param="metrics" text={text} />
      </div>
      {found.length === 0 && <p class="muted">No metric of this host matches.</p>}
      {found.map((group, k) => (
        <MetricGroup
          key={`${group.word} ${text !== ""}`}
          group={group}
          isOpen={text !== "" ? count <= CHARTS_MAX || k === 0 : isOpen && k < 2}
          frame={frame}
          name={name}
        />
      ))}
    </section>
  );
}

interface MetricGroupProps {
  group: Group;
  isOpen: boolean;
  frame: TimeFrame;
  name: string;
}

function MetricGroup({ group, isOpen, frame, name }: MetricGroupProps) {
  const open = useSignal(isOpen);
  const shown = useSignal(CHARTS_MAX);
  const left = group.metrics.length - shown.value;
  return (
    <details
      class="metric-group"
      open={open.value}
      onToggle={(event) => (open.value = event.currentTarget.open)}
    >
      <summary>
        <Icon name="right" />
        <span class="mono">{group.word}</span>
        <span class="muted num">{group.metrics.length}</span>
      </summary>
      {open.value && (
        <div class="charts">
          {group.metrics.slice(0, shown.value).map((metric) => (
            <MetricChart key={metric.metric} metric={metric} frame={frame} name={name} />
          ))}
        </div>
      )}
      {open.value && left > 0 && (
        <button type="button" class="button" onClick={() => (shown.value += CHARTS_MAX)}>
          {Math.min(left, CHARTS_MAX)} more of {left}
        </button>
      )}
    </details>
  );
}

interface MetricChartProps {
  metric: MetricCount;
  frame: TimeFrame;
  name: string;
}

function MetricChart({ metric: { metric, series }, frame, name }: MetricChartProps) {
  const tags = tagsOfHost(name);
  const top = series > LINES_MAX ? { top: LINES_MAX } : {};
  return (
    <Chart
      title={metric}
      id={`all-${metric}`}
      frame={frame}
      queries={[{ kind: "metric", metric, tags, ...top }]}
      actions={<ExploreLink frame={frame} metric={metric} tags={tags} />}
    />
  );
}

function ExploreLink({ frame, metric, tags }: { frame: TimeFrame; metric: string; tags: string }) {
  const choice = writeChoice(frame.choice.value, { zone: "" });
  return (
    <a
      class="button quiet icon-only"
      href={href("/explore", { metric, tags, ...choice })}
      aria-label={`Explore ${metric}`}
      title="Explore"
    >
      <Icon name="explore" />
    </a>
  );
}
