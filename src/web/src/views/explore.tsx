/** Any metric or expression, as a chart and as a table. All state is in the address. */
import { useComputed, useSignal } from "@preact/signals";
import { useCallback, useEffect } from "preact/hooks";
import type { ChartPanel, PanelQuery } from "../api/types";
import { address, param, setParams } from "../app/address";
import { Chart } from "../chart/chart";
import { TimeControls } from "../chart/controls";
import type { ChartData, Failure } from "../chart/data";
import { useTimeFrame } from "../chart/frame";
import { readState } from "../chart/state";
import { AnnotateButton } from "../parts/annotate";
import { Icon } from "../parts/icon";
import { Empty } from "../parts/states";
import { isComplete, letterOf, QUERIES_MAX } from "../queries/address";
import { Facets } from "../queries/facets";
import { displayOf, NumberChoice } from "../queries/number-choice";
import { NO_METRIC, QueryRows } from "../queries/query-rows";
import { useQueries } from "../queries/use-queries";
import "../styles/explore.css";
import { chartPanel } from "./dashboard/draft";
import { operandsOf } from "./explore/combine";
import { CombineDialog } from "./explore/combine-dialog";
import { SaveDialog } from "./explore/save-dialog";
import { DataTable } from "./explore/table";

const number = param("number");

export function Explore() {
  const { queries, change } = useQueries(NO_METRIC);
  const frame = useTimeFrame();
  const active = useSignal(0);
  const data = useSignal<ChartData | undefined>(undefined);
  const failures = useSignal<Failure[]>([]);
  const panel = useSignal<ChartPanel | undefined>(undefined);
  const isCombining = useSignal(false);
  useEffect(() => {
    document.title = "Explore · Granary";
  }, []);
  const complete = useComputed(() => queries.value.filter(isComplete));
  const shown = useComputed(() => complete.value.filter(({ hidden }) => !hidden));
  const onData = useCallback((next: ChartData) => (data.value = next), []);
  const onFailures = useCallback((next: Failure[]) => (failures.value = next), []);
  const at = Math.min(active.value, queries.value.length - 1);
  const query = queries.value[at];
  const title = titleOf(complete.value);
  const display = displayOf(number.value);
  const operands = operandsOf(data.value?.series ?? [], complete.value);
  const hasTags = query?.kind === "metric" && query.metric !== "";
  return (
    <>
      <header class="head">
        <h1>Explore</h1>
        <AnnotateButton frame={frame} />
        <button
          type="button"
          class="button primary"
          disabled={complete.value.length === 0}
          onClick={() => (panel.value = panelOf(title, complete.value))}
        >
          <Icon name="dashboards" /> Save to a dashboard
        </button>
      </header>
      <TimeControls frame={frame} />
      <section class="card" aria-label="Queries">
        <QueryRows
          queries={queries.value}
          onChange={change}
          active={at}
          onActive={(next) => (active.value = next)}
          errors={errorsOf(queries.value, failures.value)}
        >
          <button
            type="button"
            class="button quiet"
            disabled={operands.length < 2 || queries.value.length >= QUERIES_MAX}
            title="The ratio, difference or sum of two drawn series"
            onClick={() => (isCombining.value = true)}
          >
            Combine two series
          </button>
          <NumberChoice value={display} onChange={(next) => setParams({ number: next })} />
        </QueryRows>
      </section>
      <div class={hasTags ? "explore with-tags" : "explore"}>
        {hasTags ? (
          <Facets
            query={query}
            letter={letterOf(at)}
            onChange={(next) => change(queries.value.with(at, next))}
          />
        ) : null}
        <div class="explore-shown">
          {shown.value.length === 0 ? (
            <section class="card">
              <Empty
                title={complete.value.length > 0 ? "All queries are hidden" : "No queries yet"}
              >
                <p>
                  {complete.value.length > 0
                    ? "Show a query to draw it."
                    : "Search for a metric by name, or enter PromQL."}
                </p>
              </Empty>
            </section>
          ) : (
            <>
              <h2 class="hidden-text">Chart</h2>
              <Chart
                id="explore"
                title={title}
                queries={complete.value}
                frame={frame}
                display={display}
                fill
                onData={onData}
                onFailures={onFailures}
              />
              {data.value && data.value.series.length > 0 ? (
                <DataTable data={data.value} title={title} />
              ) : null}
            </>
          )}
        </div>
      </div>
      {isCombining.value && (
        <CombineDialog
          operands={operands}
          onClose={() => (isCombining.value = false)}
          onAdd={(query) => {
            change([...complete.value, query]);
            isCombining.value = false;
          }}
        />
      )}
      {panel.value ? (
        <SaveDialog panel={panel.value} onClose={() => (panel.value = undefined)} />
      ) : null}
    </>
  );
}

/** The title of the chart; constant while an expression is edited. */
function titleOf(queries: readonly PanelQuery[]): string {
  const names = queries.map((query) => (query.kind === "metric" ? query.metric : "PromQL"));
  return [...new Set(names)].slice(0, 3).join(", ") || "Explore";
}

/** The drawn chart as a panel of a dashboard. */
function panelOf(title: string, queries: PanelQuery[]): ChartPanel {
  const { log, stacked } = readState(address.peek().params, "explore");
  const display = displayOf(number.peek());
  return {
    ...chartPanel(title, queries),
    ...(display ? { display } : {}),
    ...(log ? { log } : {}),
    ...(stacked ? { stacked } : {}),
  };
}

/** Errors by row of the queries. */
function errorsOf(rows: readonly PanelQuery[], failures: readonly Failure[]) {
  const rowIndexes = rows.flatMap((query, row) => (isComplete(query) ? [row] : []));
  const errors = failures.map(({ index: at, message }) => [rowIndexes[at] ?? at, message] as const);
  return Object.fromEntries(errors);
}
