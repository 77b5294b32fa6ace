/** What moved? The series that differ most from the same length of time before, as small charts. */
import { useEffect } from "preact/hooks";
import { api } from "../api/client";
import { useResource } from "../api/resource";
import type { MovedAnswer } from "../api/types";
import { param, setParams } from "../app/address";
import { useTimeFrame, type TimeFrame } from "../chart/frame";
import { TimeRange } from "../chart/time-range";
import { lengthText } from "../model/words";
import { Empty, Failed, Loading } from "../parts/states";
import { MovedTile } from "./moved/tile";
import "./moved/moved.css";

const TOP = 48;
const [tags, metric, chosen] = [param("tags"), param("metric"), param("of")];

/** The selections of series; a link offers those that it names. */
type Scope = "tags" | "metric" | "all";

export function Moved() {
  const frame = useTimeFrame({ range: "1h", resolution: "1m" });
  useEffect(() => {
    document.title = "What moved? · Granary";
  }, []);
  const scopes = scopesOf(tags.value, metric.value);
  const scope = scopes.find(({ value }) => value === chosen.value) ?? scopes[0];
  const { start, end } = frame.window.value;
  const params = {
    ...(scope?.value === "tags" ? { tags: tags.value } : {}),
    ...(scope?.value === "metric" ? { metric: metric.value } : {}),
    start,
    end,
    top: TOP,
  };
  const { data, error, loading, reload } = useResource(
    JSON.stringify(params),
    (signal) => api.moved(params, signal),
    { isKeptBetween: true },
  ).value;
  return (
    <div class="moved-view">
      <header class="head">
        <h1>What moved?</h1>
        <TimeRange frame={frame} />
        {scopes.length > 1 && (
          <div class="choices" role="group" aria-label="Series">
            {scopes.map(({ value, label }) => (
              <button
                key={value}
                type="button"
                aria-pressed={value === scope?.value}
                onClick={() => setParams({ of: value }, { replace: true })}
              >
                {label}
              </button>
            ))}
          </div>
        )}
      </header>
      {error && !loading ? (
        <section class="card">
          <Failed message={`Cannot rank the series: ${error.message}`} onRetry={reload} />
        </section>
      ) : data ? (
        <Ranking answer={data} frame={frame} />
      ) : (
        <section class="card">
          <Loading what="the series that moved" />
        </section>
      )}
    </div>
  );
}

function scopesOf(tagText: string, metricName: string): { value: Scope; label: string }[] {
  return [
    ...(tagText ? [{ value: "tags" as const, label: tagText }] : []),
    ...(metricName ? [{ value: "metric" as const, label: metricName }] : []),
    { value: "all" as const, label: "All series" },
  ];
}

function Ranking({ answer, frame }: { answer: MovedAnswer; frame: TimeFrame }) {
  const { series, moved, compared, start, end, notes } = answer;
  const length = lengthText(end - start);
  return (
    <>
      <p class="moved-summary muted" role="status">
        {moved.toLocaleString("en")} of {compared.toLocaleString("en")} series moved in these{" "}
        {length}, compared with the {length} before
        {series.length < moved && `; the first ${series.length} are shown`}.
      </p>
      {notes.map((note) => (
        <p key={note} class="moved-summary muted">
          {note}
        </p>
      ))}
      {series.length === 0 ? (
        <section class="card">
          <Empty title="Nothing moved">
            <p>No series differs from the time before. Try a longer time or more series.</p>
          </Empty>
        </section>
      ) : (
        <ol class="moved-list">
          {series.map((found) => (
            <MovedTile
              key={JSON.stringify([found.metric, found.tags])}
              found={found}
              answer={answer}
              frame={frame}
            />
          ))}
        </ol>
      )}
    </>
  );
}
