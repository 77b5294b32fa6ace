/** A view of one answer: its head, failed refreshes, and the states without data. */
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { Resource } from "../api/resource";
import { Failed, Loading } from "./states";

interface Props<T> {
  title: string;
  answer: Pick<Resource<T>, "data" | "error" | "reload">;
  /** Content of the head, next to the title. */
  about?: (data: T) => ComponentChildren;
  /** A placeholder until the first answer. */
  loading?: ComponentChildren;
  /** The name of the data in a sentence: "the status". */
  what: string;
  class?: string;
  children: (data: T) => ComponentChildren;
}

export function Page<T>({ title, answer, about, loading, what, children, ...rest }: Props<T>) {
  const { data, error, reload } = answer;
  useEffect(() => {
    document.title = `${title} · Granary`;
  }, [title]);
  return (
    <div class={rest.class}>
      <div class="head">
        <h1>{title}</h1>
        {error && data !== undefined && (
          <p class="stale-note" role="status">
            Refresh failed: {error.message}
          </p>
        )}
        {data !== undefined && about?.(data)}
      </div>
      {data !== undefined ? (
        children(data)
      ) : error ? (
        <section class="card">
          <Failed message={`Cannot load ${what}: ${error.message}`} onRetry={reload} />
        </section>
      ) : (
        (loading ?? (
          <section class="card">
            <Loading what={what} />
          </section>
        ))
      )}
    </div>
  );
}
