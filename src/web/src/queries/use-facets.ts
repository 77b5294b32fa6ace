/** The remaining choices of a metric's tags. */
import type { ReadonlySignal } from "@preact/signals";
import { api } from "../api/client";
import { useResource, type Resource } from "../api/resource";
import type { FacetsAnswer } from "../api/types";
import { selectionOf, tagsOf } from "./tags";

const NO_FACETS: FacetsAnswer = { series: 0, tags_total: 0, tags: [] };

/** Recent answers, which several parts of a view share. */
const recent = new Map<string, { at: number; answer: Promise<FacetsAnswer> }>();
const RECENT_MS = 2000;
const RECENT_MAX = 20;

function loadFacets(metric: string, tags: string): Promise<FacetsAnswer> {
  const key = `${metric}\n${tags}`;
  const recentAnswer = recent.get(key);
  if (recentAnswer && performance.now() - recentAnswer.at < RECENT_MS) return recentAnswer.answer;
  if (recent.size >= RECENT_MAX) recent.clear();
  const answer = api.facets({ metric, tags });
  recent.set(key, { at: performance.now(), answer });
  answer.catch(() => recent.delete(key));
  return answer;
}

export function useFacets(metric: string, tags: string): ReadonlySignal<Resource<FacetsAnswer>> {
  return useResource(`${metric}\n${tags}`, () => {
    // The value of a variable is unknown here.
    const knownTags = [...selectionOf(tags)].filter(([, value]) => !value.includes("$"));
    const tagsWithoutVariables = tagsOf(new Map(knownTags));
    return metric ? loadFacets(metric, tagsWithoutVariables) : Promise.resolve(NO_FACETS);
  });
}
