/** The tags of a metric with their values and series counts; a click filters by a value. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { valuesOfTag } from "../api/client";
import type { Facet, MetricQuery, Variable } from "../api/types";
import { Icon } from "../parts/icon";
import { Failed } from "../parts/states";
import { selectionOf, toggleTag } from "./tags";
import { useFacets } from "./use-facets";

interface Props {
  query: MetricQuery;
  letter: string;
  /** The dashboard's variables, which can be chosen like values. */
  variables?: readonly Variable[];
  onChange: (query: MetricQuery) => void;
}

/** The number of values of a tag that are shown at first. */
const FEW = 8;
/** The number of tags whose values are shown at first. */
const OPEN = 4;

export function Facets({ query, letter, variables = [], onChange }: Props) {
  const { data, error, loading, reload } = useFacets(query.metric, query.tags).value;
  const toggle = (name: string, value: string) =>
    onChange({ ...query, tags: toggleTag(query.tags, name, value) });
  return (
    <section class="card facets" aria-label={`Tags of query ${letter}`} aria-busy={loading}>
      <div class="card-head">
        <span class="query-letter" aria-hidden="true">
          {letter}
        </span>
        <h2>Tags</h2>
        <span class="muted num facets-total" role="status">
          {data ? `${data.series.toLocaleString()} series` : ""}
        </span>
      </div>
      {!data && error ? <Failed message={error.message} onRetry={reload} /> : null}
      {data?.tags.length === 0 ? <p class="facets-none muted">These series have no tags.</p> : null}
      {data?.tags.map((facet, at) => (
        <Values
          key={facet.name}
          facet={facet}
          metric={query.metric}
          references={referencesTo(facet.name, variables)}
          chosen={selectionOf(query.tags).get(facet.name)}
          isOpen={at < OPEN}
          onToggle={(value) => toggle(facet.name, value)}
        />
      ))}
    </section>
  );
}

/** The variables of a tag. */
function referencesTo(tag: string, variables: readonly Variable[]): string[] {
  return variables.filter((variable) => variable.tag === tag).map(({ name }) => `$${name}`);
}

interface ValuesProps {
  facet: Facet;
  metric: string;
  references: string[];
  chosen: string | undefined;
  isOpen: boolean;
  onToggle: (value: string) => void;
}

type FacetValue = { value: string; series: number | undefined };

function Values({ facet, metric, references, chosen, isOpen, onToggle }: ValuesProps) {
  const text = useSignal("");
  const isAll = useSignal(false);
  const others = useOthers(facet, metric, text.value);
  const counted: FacetValue[] = facet.values;
  const known = new Set(counted.map(({ value }) => value));
  const rest = others.filter((value) => !known.has(value));
  const words = text.value.toLowerCase();
  const matching = [
    ...counted,
    ...rest.map((value): FacetValue => ({ value, series: undefined })),
  ].filter(({ value }) => value === chosen || value.toLowerCase().includes(words));
  // A button for a single value would take that value's place.
  const isCut = !isAll.value && text.value === "" && matching.length > FEW + 1;
  const shown = isCut ? firstOf(matching, chosen) : matching.slice(0, 200);
  const left = isAll.value && text.value === "" ? facet.values_total - shown.length : 0;
  const most = Math.max(1, ...counted.map(({ series }) => series ?? 0));
  return (
    <details class="facet" open={isOpen || chosen !== undefined}>
      <summary>
        <Icon name="right" />
        <span class="facet-name">{facet.name}</span>
        <span class="muted num">{facet.values_total.toLocaleString()}</span>
      </summary>
      {facet.values_total > FEW ? (
        <input
          type="search"
          aria-label={`Search values of ${facet.name}`}
          placeholder={`Search ${facet.values_total.toLocaleString()} values`}
          value={text.value}
          onInput={(event) => (text.value = event.currentTarget.value)}
        />
      ) : null}
      <ul>
        {references.map((reference) => (
          <li key={reference}>
            <Value
              value={reference}
              series={undefined}
              part={0}
              isChosen={reference === chosen}
              onToggle={onToggle}
            />
          </li>
        ))}
        {shown.map(({ value, series }) => (
          <li key={value}>
            <Value
              value={value}
              series={series}
              part={(series ?? 0) / most}
              isChosen={value === chosen}
              onToggle={onToggle}
            />
          </li>
        ))}
      </ul>
      {shown.length === 0 ? <p class="facets-none muted">No value matches “{text.value}”</p> : null}
      {isCut ? (
        <button type="button" class="button quiet facet-more" onClick={() => (isAll.value = true)}>
          {(facet.values_total - FEW).toLocaleString()} more
        </button>
      ) : null}
      {left > 0 ? <p class="facets-none muted">{left.toLocaleString()} more: search</p> : null}
    </details>
  );
}

/** The first values, including the chosen value. */
function firstOf(values: FacetValue[], chosen: string | undefined): FacetValue[] {
  const first = values.slice(0, FEW);
  const current = values.find(({ value }) => value === chosen);
  return current && !first.includes(current) ? [current, ...first.slice(0, FEW - 1)] : first;
}

interface ValueProps {
  value: string;
  series: number | undefined;
  part: number;
  isChosen: boolean;
  onToggle: (value: string) => void;
}

function Value({ value, series, part, isChosen, onToggle }: ValueProps) {
  return (
    <button
      type="button"
      class="facet-value"
      aria-pressed={isChosen}
      title={value}
      onClick={() => onToggle(value)}
    >
      <meter class="facet-part" min={0} max={1} value={part} aria-hidden="true" />
      <span class="facet-text">{value === "" ? "(empty)" : value}</span>
      <span class="num muted">{series?.toLocaleString() ?? ""}</span>
    </button>
  );
}

/** Values that the answer lacks, loaded when the reader searches. */
function useOthers(facet: Facet, metric: string, text: string): string[] {
  const others = useSignal<string[]>([]);
  const isNeeded = text !== "" && facet.values_total > facet.values.length;
  useEffect(() => {
    if (!isNeeded) return;
    const abort = new AbortController();
    valuesOfTag(facet.name, metric, abort.signal).then(
      (values) => (others.value = values),
      () => undefined,
    );
    return () => abort.abort();
  }, [isNeeded, facet.name, metric]);
  return isNeeded ? others.value : [];
}
