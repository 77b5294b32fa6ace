/**
 * Completion of PromQL: Prometheus' grammar decides which words fit at a position, and the daemon's
 * parser decides which words exist.
 */
import type { Completion, CompletionSource } from "@codemirror/autocomplete";
import { newCompleteStrategy } from "@prometheus-io/codemirror-promql";
import { promqlFetch } from "../../api/client";
import vocabulary from "./vocabulary.json";

/** A function that the library offers wherever functions fit. */
const A_FUNCTION = "abs";
/** Keywords of the daemon that the library lacks, which fit where `offset` fits. */
const ADDED_KEYWORDS: readonly Completion[] = [{ label: "anchored" }, { label: "smoothed" }];

let sharedSource: CompletionSource | undefined;

/** Names, labels and values from the daemon, cached for all editors. */
export function completions(): CompletionSource {
  if (sharedSource) return sharedSource;
  const remote = { httpMethod: "GET" as const, apiPrefix: "/api/v1", fetchFn: promqlFetch };
  const strategy = newCompleteStrategy({ remote, maxMetricsMetadata: 5000 });
  sharedSource = withDaemonWords(strategy.promQL.bind(strategy));
  return sharedSource;
}

/** A source of completions with the daemon's words beside the library's. */
export function withDaemonWords(source: CompletionSource): CompletionSource {
  return async (context) => {
    const result = await source(context);
    return result && { ...result, options: [...result.options, ...addedWords(result.options)] };
  };
}

/** The words of the daemon that the library lacks, among others that fit at the same position. */
function addedWords(offered: readonly Completion[]): readonly Completion[] {
  const labels = new Set(offered.map(({ label }) => label));
  const functions = labels.has(A_FUNCTION)
    ? vocabulary.functions.filter((label) => !labels.has(label))
    : [];
  return [
    ...functions.map((label) => ({ label, detail: "function", type: "function" })),
    ...(labels.has("offset") ? ADDED_KEYWORDS : []),
  ];
}
