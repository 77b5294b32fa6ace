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
  onActive: (at: number) => void;
  /** The daemon's error for a query, by its index. */
  errors: Readonly<Record<number, string>>;
  /** Choices for all queries, beside the buttons that add a query. */
  children?: ComponentChildren;
}

export const NO_METRIC: PanelQuery = { kind: "metric", metric: "", tags: "" };
export const NO_EXPRESSION: PanelQuery = { kind: "promql", expression: "" };

export function QueryRows(props: QueryRowsProps) {
  const { queries, onChange, active, onActive, errors } = props;
  const change = (at: number, query: PanelQuery) => onChange(queries.with(at, query));
  const add = (query: PanelQuery, at = queries.length) => {
    onChange(queries.toSpliced(at, 0, query));
    onActive(at);
  };
  const isFull = queries.length >= QUERIES_MAX;
  return (
    <div class="queries">
      <ol class="query-rows">
        {queries.map((query, at) => (
          <li
            key={at}
            class={`query${at === active ? " active" : ""}${query.hidden ? " put-away" : ""}`}
            onFocusCapture={() => onActive(at)}
            onPointerDown={() => onActive(at)}
          >
            <span class="query-letter" aria-hidden="true">
              {letterOf(at)}
            </span>
            <KindChoice query={query} at={at} onChange={(next) => change(at, next)} />
            <div class="query-body">
              <Body
                query={query}
                at={at}
                error={errors[at]}
                onChange={(next) => change(at, next)}
              />
            </div>
            <Actions {...props} query={query} at={at} add={isFull ? undefined : add} />
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
  at: number;
  onChange: (query: PanelQuery) => void;
}

function KindChoice({ query, at, onChange }: RowProps) {
  const pick = (kind: PanelQuery["kind"]) => {
    if (kind === query.kind) return;
    onChange(kind === "promql" ? asPromql(query) : NO_METRIC);
  };
  return (
    <div class="choices" role="group" aria-label={`Kind of query ${letterOf(at)}`}>
      <button type="button" aria-pressed={query.kind === "metric"} onClick={() => pick("metric")}>
        Metric
      </button>
      <button type="button" aria-pressed={query.kind === "promql"} onClick={() => pick("promql")}>
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

function Body({ query, at, error, onChange }: RowProps & { error: string | undefined }) {
  if (query.kind === "metric") {
    return <MetricRow query={query} letter={letterOf(at)} error={error} onChange={onChange} />;
  }
  return (
    <>
      <PromqlEditor
        label={`PromQL expression of query ${letterOf(at)}`}
        value={query.expression}
        error={error}
        onRun={(expression) => {
          if (expression !== query.expression) onChange({ ...query, expression });
        }}
      />
      <input
        type="text"
        class="query-legend"
        aria-label={`Legend of query ${letterOf(at)}`}
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
  at: number;
  add: ((query: PanelQuery, at: number) => void) | undefined;
};

function Actions({ queries, onChange, onActive, query, at, add }: ActionsProps) {
  const swap = (other: number) => {
    const [a, b] = [queries[at], queries[other]];
    if (!a || !b) return;
    onChange(queries.with(at, b).with(other, a));
    onActive(other);
  };
  const hide = () => {
    const { hidden, ...rest } = query;
    onChange(queries.with(at, hidden ? rest : { ...rest, hidden: true }));
  };
  const letter = letterOf(at);
  const action = (icon: IconName, label: string, act: (() => void) | undefined, more = {}) => (
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
      {action(query.hidden ? "hidden" : "eye", "Hide query", hide, {
        "aria-pressed": query.hidden ?? false,
      })}
      {action("copy", "Copy query", add && (() => add(query, at + 1)))}
      {queries.length > 1 ? (
        <>
          {action("up", "Move up query", at > 0 ? () => swap(at - 1) : undefined)}
          {action(
            "down",
            "Move down query",
            at + 1 < queries.length ? () => swap(at + 1) : undefined,
          )}
        </>
      ) : null}
      {action("close", "Remove query", removal())}
    </div>
  );

  function removal() {
    if (queries.length > 1) {
      return () => {
        onChange(queries.toSpliced(at, 1));
        onActive(Math.max(0, at - 1));
      };
    }
    return isComplete(query) ? () => onChange([NO_METRIC]) : undefined;
  }
}
