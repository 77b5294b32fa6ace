/**
 * Completion of PromQL: Prometheus' grammar decides which words fit at a position, and the daemon's
 * parser decides which words exist.
 */
import type { Completion, CompletionSource } from "@codemirror/autocomplete";
import { newCompleteStrategy } from "@prometheus-io/codemirror-promql";
import { promqlFetch } from "../../api/client";

/** Words of the daemon that the library lacks, by a library word that fits where they fit. */
const ADDED_WORDS: Record<string, readonly Completion[]> = {
  abs: ["forecast", "forecast_until", "holt_winters", "integral", "max_of", "min_of"].map(
    (label) => ({
      label,
      detail: "function",
      type: "function",
    }),
  ),
  offset: [{ label: "anchored" }, { label: "smoothed" }],
};

let sharedSource: CompletionSource | undefined;

/** Names, labels and values from the daemon, cached for all editors. */
export function completions(): CompletionSource {
  if (sharedSource) return sharedSource;
  const remote = { httpMethod: "GET" as const, apiPrefix: "/api/v1", fetchFn: promqlFetch };
  const strategy = newCompleteStrategy({ remote, maxMetricsMetadata: 5000 });
  sharedSource = withDaemonWords(strategy.promQL.bind(strategy));
  return sharedSource;
}

/** A source of completions with the daemon's words instead of the library's. */
export function withDaemonWords(source: CompletionSource): CompletionSource {
  return async (context) => {
    const result = await source(context);
    return result && { ...result, options: result.options.flatMap(daemonWords) };
  };
}

function daemonWords(word: Completion): readonly Completion[] {
  return [word, ...(ADDED_WORDS[word.label] ?? [])];
}
