/** A query of one metric: its name, tags and lines. */
import { useSignal } from "@preact/signals";
import { api } from "../api/client";
import type { FoundMetric, MetricQuery } from "../api/types";
import { Combobox } from "../parts/combobox";
import { Icon } from "../parts/icon";
import { Popover } from "../parts/popover";
import { countOf } from "./address";
import { namesOf, selectionOf, tagsOf } from "./tags";
import { useFacets } from "./use-facets";

interface Props {
  query: MetricQuery;
  letter: string;
  error: string | undefined;
  onChange: (query: MetricQuery) => void;
}

const SHOWN_MAX = 50;

export function MetricRow({ query, letter, error, onChange }: Props) {
  return (
    <>
      <div class="metric-row">
        <Combobox<FoundMetric>
          label={`Metric of query ${letter}`}
          value={query.metric}
          placeholder="Search metrics: cpu user, disk bytes…"
          noun="metrics"
          find={async (text, signal) => {
            const answer = await api.find({ q: text, limit: SHOWN_MAX }, signal);
            return { total: answer.total, items: answer.metrics };
          }}
          keyOf={(item) => item.metric}
          render={(item) => <MetricOption item={item} />}
          onChoose={({ metric }) => onChange({ ...query, metric })}
        />
        {query.metric ? <Grouping query={query} onChange={onChange} /> : null}
        {query.metric ? <Ranking query={query} letter={letter} onChange={onChange} /> : null}
      </div>
      <ChosenTags query={query} onChange={onChange} />
      {error ? (
        <p class="problem" role="status">
          <Icon name="warning" />
          <span>{error}</span>
        </p>
      ) : null}
    </>
  );
}

function MetricOption({ item }: { item: FoundMetric }) {
  const about = [item.kind, item.unit, `${item.series.toLocaleString()} series`];
  return (
    <span class="found-metric">
      <span class="name mono">{item.metric}</span>
      <span class="about num">{about.filter(Boolean).join(" · ")}</span>
    </span>
  );
}

type Part = Pick<Props, "query" | "onChange">;

/** The chosen tags; a click removes a tag. */
function ChosenTags({ query, onChange }: Part) {
  const selection = selectionOf(query.tags);
  if (selection.size === 0) return null;
  const drop = (name: string) => {
    const rest = new Map(selection);
    rest.delete(name);
    onChange({ ...query, tags: tagsOf(rest) });
  };
  return (
    <ul class="asked-tags" aria-label="Tag filters">
      {[...selection].map(([name, value]) => (
        <li key={name}>
          <button
            type="button"
            class="asked-tag"
            aria-label={`Remove filter ${name}=${value}`}
            onClick={() => drop(name)}
          >
            <span>
              <span class="muted">{name}=</span>
              {value}
            </span>
            <Icon name="close" />
          </button>
        </li>
      ))}
    </ul>
  );
}

/** The grouping: a line for each series, for all series together, or for each value of tags. */
function Grouping({ query, onChange }: Part) {
  const facets = useFacets(query.metric, query.tags).value.data;
  const chosen = namesOf(query.group_by);
  const { group_by, merge, ...plain } = query;
  const text =
    chosen.length > 0 ? `by ${chosen.join(", ")}` : query.merge ? "merged" : "each series";
  const names = [...new Set([...chosen, ...(facets?.tags ?? []).map(({ name }) => name)])];
  const toggle = (name: string) => {
    const next = chosen.includes(name)
      ? chosen.filter((other) => other !== name)
      : [...chosen, name];
    onChange(next.length > 0 ? { ...plain, group_by: next.join(",") } : plain);
  };
  return (
    <Popover label="Lines" text={text}>
      <label class="checked">
        <input
          type="radio"
          checked={!query.merge && chosen.length === 0}
          onChange={() => onChange(plain)}
        />
        <span>Each series</span>
      </label>
      <label class="checked">
        <input
          type="radio"
          checked={(query.merge ?? false) && chosen.length === 0}
          onChange={() => onChange({ ...plain, merge: true })}
        />
        <span>All series merged</span>
      </label>
      <p class="popover-part">Merged by tag</p>
      {names.map((name) => (
        <label key={name} class="checked">
          <input type="checkbox" checked={chosen.includes(name)} onChange={() => toggle(name)} />
          <span>{name}</span>
        </label>
      ))}
    </Popover>
  );
}

/** The ranking: all lines, or the lines with the largest or smallest values. */
function Ranking({ query, letter, onChange }: Part & { letter: string }) {
  const { top, bottom, ...plain } = query;
  const rank = top ? "top" : bottom ? "bottom" : "all";
  const count = top ?? bottom ?? 10;
  const typed = useSignal<string | undefined>(undefined);
  const set = (next: string, many: number) => {
    if (next === "top") onChange({ ...plain, top: many });
    else if (next === "bottom") onChange({ ...plain, bottom: many });
    else onChange(plain);
  };
  return (
    <span class="ranking">
      <select
        aria-label={`Lines of query ${letter}`}
        value={rank}
        onChange={(event) => set(event.currentTarget.value, count)}
      >
        <option value="all">All lines</option>
        <option value="top">Top</option>
        <option value="bottom">Bottom</option>
      </select>
      {rank === "all" ? null : (
        <input
          type="number"
          class="num"
          aria-label={`Number of lines of query ${letter}`}
          min={1}
          max={1000}
          // The typed text stays while the page renders.
          value={typed.value ?? count}
          onInput={(event) => (typed.value = event.currentTarget.value)}
          onChange={(event) => {
            typed.value = undefined;
            set(rank, countOf(event.currentTarget.value) ?? count);
          }}
        />
      )}
    </span>
  );
}
