/** A row for each query of a chart; actions add, edit, hide, copy, move and remove a query. */
import type { ComponentChildren } from "preact";
import type { PanelQuery } from "../api/types";
import { Icon, type IconName } from "../parts/icon";
import { PromqlEditor } from "../parts/promql-editor/promql-editor";
import "../styles/queries.css";
import { letterOf, QUERIES_MAX, isComplete } from "./address";
import { MetricRow } from "./metric-row";

export interface QueryRowsProps {
  queries: readonly PanelQuery[];
  onChange: (queries: PanelQuery[]) => void;
  /** The row whose tags are shown. */
  active: number;
  onActive: (index: number) => void;
  /** The daemon's error for a query, by its index. */
  errors: Readonly<Record<number, string>>;
  /** Choices for all queries, next to the buttons that add a query. */
  children?: ComponentChildren;
}

export const NO_METRIC: PanelQuery = { kind: "metric", metric: "", tags: "" };
export const NO_EXPRESSION: PanelQuery = { kind: "promql", expression: "" };

export function QueryRows(props: QueryRowsProps) {
  const { queries, onChange, active, onActive, errors } = props;
  const change = (index: number, query: PanelQuery) => onChange(queries.with(index, query));
  const add = (query: PanelQuery, index = queries.length) => {
    onChange(queries.toSpliced(index, 0, query));
    onActive(index);
  };
  const isFull = queries.length >= QUERIES_MAX;
  return (
    <div class="queries">
      <ol class="query-rows">
        {queries.map((query, index) => (
          <li
            key={index}
            class={`query${index === active ? " active" : ""}${query.hidden ? " put-away" : ""}`}
            onFocusCapture={() => onActive(index)}
            onPointerDown={() => onActive(index)}
          >
            <span class="query-letter" aria-hidden="true">
              {letterOf(index)}
            </span>
            <KindChoice query={query} index={index} onChange={(next) => change(index, next)} />
            <div class="query-body">
              <QueryFields
                query={query}
                index={index}
                error={errors[index]}
                onChange={(next) => change(index, next)}
              />
            </div>
            <QueryActions {...props} query={query} index={index} add={isFull ? undefined : add} />
          </li>
        ))}
      </ol>
      <div class="query-add">
        <button type="button" class="button quiet" disabled={isFull} onClick={() => add(NO_METRIC)}>
          <Icon name="plus" /> Add metric
        </button>
        <button
          type="button"
          class="button quiet"
          disabled={isFull}
          onClick={() => add(NO_EXPRESSION)}
        >
          <Icon name="plus" /> Add PromQL
        </button>
        {isFull ? <span class="muted">A chart has {QUERIES_MAX} queries at most.</span> : null}
        {props.children ? <span class="apart">{props.children}</span> : null}
      </div>
    </div>
  );
}

interface RowProps {
  query: PanelQuery;
  index: number;
  onChange: (query: PanelQuery) => void;
}

function KindChoice({ query, index, onChange }: RowProps) {
  const chooseKind = (kind: PanelQuery["kind"]) => {
    if (kind === query.kind) return;
    onChange(kind === "promql" ? asPromql(query) : NO_METRIC);
  };
  return (
    <div class="choices" role="group" aria-label={`Kind of query ${letterOf(index)}`}>
      <button
        type="button"
        aria-pressed={query.kind === "metric"}
        onClick={() => chooseKind("metric")}
      >
        Metric
      </button>
      <button
        type="button"
        aria-pressed={query.kind === "promql"}
        onClick={() => chooseKind("promql")}
      >
        PromQL
      </button>
    </div>
  );
}

/** Converts a metric query to PromQL, to continue there. */
function asPromql(query: PanelQuery): PanelQuery {
  const isPlain = query.kind === "metric" && /^[a-zA-Z_:][\w:]*$/.test(query.metric);
  return { kind: "promql", expression: isPlain ? query.metric : "" };
}

function QueryFields({ query, index, error, onChange }: RowProps & { error: string | undefined }) {
  if (query.kind === "metric") {
    return <MetricRow query={query} letter={letterOf(index)} error={error} onChange={onChange} />;
  }
  return (
    <>
      <PromqlEditor
        label={`PromQL expression of query ${letterOf(index)}`}
        value={query.expression}
        error={error}
        onRun={(expression) => {
          if (expression !== query.expression) onChange({ ...query, expression });
        }}
      />
      <input
        type="text"
        class="query-legend"
        aria-label={`Legend of query ${letterOf(index)}`}
        placeholder="Legend, such as {{host}}"
        value={query.legend ?? ""}
        onChange={(event) => {
          const { legend, ...rest } = query;
          const next = event.currentTarget.value.trim();
          onChange(next ? { ...rest, legend: next } : rest);
        }}
      />
    </>
  );
}

type ActionsProps = QueryRowsProps & {
  query: PanelQuery;
  index: number;
  add: ((query: PanelQuery, index: number) => void) | undefined;
};

function QueryActions({ queries, onChange, onActive, query, index, add }: ActionsProps) {
  const swap = (otherIndex: number) => {
    const [a, b] = [queries[index], queries[otherIndex]];
    if (!a || !b) return;
    onChange(queries.with(index, b).with(otherIndex, a));
    onActive(otherIndex);
  };
  const hide = () => {
    const { hidden, ...rest } = query;
    onChange(queries.with(index, hidden ? rest : { ...rest, hidden: true }));
  };
  const letter = letterOf(index);
  const actionButton = (
    icon: IconName,
    label: string,
    act: (() => void) | undefined,
    more = {},
  ) => (
    <button
      type="button"
      class="button quiet icon-only"
      aria-label={`${label} ${letter}`}
      title={label}
      disabled={act === undefined}
      onClick={act}
      {...more}
    >
      <Icon name={icon} />
    </button>
  );
  return (
    <div class="query-actions">
      {actionButton(query.hidden ? "hidden" : "eye", "Hide query", hide, {
        "aria-pressed": query.hidden ?? false,
      })}
      {actionButton("copy", "Copy query", add && (() => add(query, index + 1)))}
      {queries.length > 1 ? (
        <>
          {actionButton("up", "Move up query", index > 0 ? () => swap(index - 1) : undefined)}
          {actionButton(
            "down",
            "Move down query",
            index + 1 < queries.length ? () => swap(index + 1) : undefined,
          )}
        </>
      ) : null}
      {actionButton("close", "Remove query", removal())}
    </div>
  );

  function removal() {
    if (queries.length > 1) {
      return () => {
        onChange(queries.toSpliced(index, 1));
        onActive(Math.max(0, index - 1));
      };
    }
    return isComplete(query) ? () => onChange([NO_METRIC]) : undefined;
  }
}
