/** The metrics, tags and senders with the most series, next to yesterday's counts. */
import { param, setParams } from "../../app/address";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import type { CardinalityAnswer, CountedName } from "../../api/types";
import { Ago } from "../../parts/ago";
import { Table, numberColumns } from "../../parts/table";
import { Failed, Loading } from "../../parts/states";
import { countText } from "../../model/words";

/** Counting visits the names of all series. */
const EVERY_MS = 60_000;
const LISTED = 10;

type List = "metrics" | "tags" | "senders";

const LISTS: { list: List; name: string; head: string; counted: string }[] = [
  { list: "metrics", name: "Metrics", head: "Metric", counted: "Series" },
  { list: "tags", name: "Tags", head: "Tag", counted: "Values" },
  { list: "senders", name: "Senders", head: "Sender", counted: "Series" },
];

const chosen = param("cardinality", "metrics");

export function Cardinality() {
  const load = (signal: AbortSignal) => api.cardinality({ limit: LISTED }, signal);
  const { data, error, reload } = useResource("cardinality", load, { everyMs: EVERY_MS }).value;
  return (
    <section class="card section">
      <div class="card-head">
        <h2>Cardinality</h2>
        {data && <Since answer={data} />}
      </div>
      {data ? (
        <Lists answer={data} />
      ) : error ? (
        <Failed message={`Cannot load the cardinality: ${error.message}`} onRetry={reload} />
      ) : (
        <Loading />
      )}
    </section>
  );
}

function Since({ answer: { series, since } }: { answer: CardinalityAnswer }) {
  return (
    <span class="muted num">
      {countText(series.count)} series
      {since !== null && (
        <>
          , compared with <Ago at={since} />
        </>
      )}
    </span>
  );
}

function Lists({ answer }: { answer: CardinalityAnswer }) {
  const shown = LISTS.find(({ list }) => list === chosen.value) ?? LISTS[0];
  if (!shown) return null;
  const rows = answer[shown.list];
  return (
    <>
      <div class="choices cardinality-lists" role="group" aria-label="Count by">
        {LISTS.map(({ list, name }) => (
          <button
            key={list}
            type="button"
            aria-pressed={list === shown.list}
            onClick={() => setParams({ cardinality: list }, { replace: true })}
          >
            {name}
          </button>
        ))}
      </div>
      {rows.length === 0 ? (
        <p class="nothing">No series yet.</p>
      ) : (
        <Table
          label={`Cardinality of ${shown.name.toLowerCase()}`}
          class="cardinality"
          columns={[shown.head, ...numberColumns(shown.counted, "Before", "Change")]}
        >
          {rows.map((row) => (
            <Row key={row.name} {...row} />
          ))}
        </Table>
      )}
    </>
  );
}

function Row({ name, count, before }: CountedName) {
  const change = before === null ? null : count - before;
  return (
    <tr>
      <th scope="row">{name}</th>
      <td class="num">{countText(count)}</td>
      <td class="num muted">{countText(before)}</td>
      <td class="num">{changeText(change)}</td>
    </tr>
  );
}

/** Returns a change with its sign. */
function changeText(change: number | null): string {
  if (change === null || change === 0) return countText(change);
  return `${change > 0 ? "+" : "\u2212"}${countText(Math.abs(change))}`;
}
