/** Messages on a chart: why values are missing, and errors. */
import { Icon } from "../parts/icon";
import type { LiveChart } from "./live";

/** The reason for missing values, or the error of a refresh. */
export function Notice({ live }: { live: LiveChart }) {
  const data = live.loader.data.value;
  const error = live.loader.error.value;
  const isLoading = live.loader.isLoading.value;
  const bar = isLoading && (!data || data.isCoarse) ? <div class="chart-bar" /> : null;
  if (error) {
    const isOld = data !== undefined && data.series.length > 0;
    return (
      <div class={isOld ? "chart-notice is-small" : "chart-notice"} role="alert">
        <Icon name="warning" />
        {error.message}
      </div>
    );
  }
  if (!data) return bar ?? null;
  const isEmpty = data.series.every(({ values }) =>
    values.every((v) => v === null || v === undefined),
  );
  if (!isEmpty || isLoading) return bar;
  const [note] = data.series.length === 0 ? data.notes : [];
  return (
    <div class="chart-notice">
      No samples in this time range
      {note && <small>{note}</small>}
    </div>
  );
}

/** The daemon's notes on the answer. */
export function Notes({ live }: { live: LiveChart }) {
  const data = live.loader.data.value;
  if (!data || data.series.length === 0) return null;
  const drawn = data.series.length;
  const notes = [
    ...(data.rest.length > 0 && !live.isHeat.value
      ? [
          `${drawn} of ${drawn + data.rest.length} series are drawn, by value now: filter by tags for others`,
        ]
      : []),
    ...data.notes.filter((note) => !note.startsWith("no ")),
  ];
  if (notes.length === 0) return null;
  const [first, ...others] = notes;
  if (others.length === 0) return <p class="chart-notes">{first}</p>;
  return (
    <details class="chart-notes">
      <summary>{notes.length} notes on these numbers</summary>
      <ul>
        {notes.map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
    </details>
  );
}
