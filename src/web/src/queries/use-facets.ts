/** What a metric's tags leave to choose from. */
import type { ReadonlySignal } from "@preact/signals";
import { api } from "../api/client";
import { useResource, type Resource } from "../api/resource";
import type { FacetsAnswer } from "../api/types";
import { selectionOf, tagsOf } from "./tags";

const NONE: FacetsAnswer = { series: 0, tags: [] };

export function useFacets(metric: string, tags: string): ReadonlySignal<Resource<FacetsAnswer>> {
  return useResource(`${metric}\n${tags}`, (signal) => {
    // What a variable stands for is not known here.
    const known = [...selectionOf(tags)].filter(([, value]) => !value.includes("$"));
    const plain = tagsOf(new Map(known));
    return metric ? api.facets({ metric, tags: plain }, signal) : Promise.resolve(NONE);
  });
}
