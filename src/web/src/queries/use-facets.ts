/** What a metric's tags leave to choose from. */
import type { ReadonlySignal } from "@preact/signals";
import { api } from "../api/client";
import { useResource, type Resource } from "../api/resource";
import type { FacetsAnswer } from "../api/types";

const NONE: FacetsAnswer = { series: 0, tags: [] };

export function useFacets(metric: string, tags: string): ReadonlySignal<Resource<FacetsAnswer>> {
  return useResource(`${metric}\n${tags}`, (signal) => {
    // What a variable will be is not known here.
    const plain = tags.includes("$") ? "" : tags;
    return metric ? api.facets({ metric, tags: plain }, signal) : Promise.resolve(NONE);
  });
}
