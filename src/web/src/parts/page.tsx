/** A view that shows one answer: its head, whether it is out of date, and what stands in for it. */
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { Resource } from "../api/resource";
import { Failed, Loading } from "./states";

interface Props<T> {
  title: string;
  answer: Pick<Resource<T>, "data" | "error" | "reload">;
  /** What stands in the head, beside the title. */
  about?: (data: T) => ComponentChildren;
  /** What stands there until the first answer does. */
  loading?: ComponentChildren;
  /** What the view is called in a sentence: "the status". */
  what: string;
  class?: string;
  children: (data: T) => ComponentChildren;
}

export function Page<T>({ title, answer, about, loading, what, children, ...own }: Props<T>) {
  const { data, error, reload } = answer;
  useEffect(() => {
    document.title = `${title} · Granary`;
  }, [title]);
  return (
    <div class={own.class}>
      <div class="head">
        <h1>{title}</h1>
        {error && data !== undefined && (
          <p class="stale-note" role="status">
            Not refreshed: {error.message}
          </p>
        )}
        {data !== undefined && about?.(data)}
      </div>
      {data !== undefined ? (
        children(data)
      ) : error ? (
        <section class="card">
          <Failed message={`${capital(what)} cannot be shown: ${error.message}`} onRetry={reload} />
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

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
