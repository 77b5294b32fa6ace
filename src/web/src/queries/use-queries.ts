/** The queries of a view, in sync with its address; incomplete queries are only in memory. */
import { signal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { PanelQuery } from "../api/types";
import { address, setParams } from "../app/address";
import { isSame } from "../model/same";
import { paramsOf, queriesOf } from "./address";

export interface AddressedQueries {
  queries: ReadonlySignal<PanelQuery[]>;
  change: (queries: PanelQuery[]) => void;
}

export function useQueries(empty: PanelQuery): AddressedQueries {
  const queries = useMemo(() => {
    const addressQueries = queriesOf(address.peek().params);
    return signal<PanelQuery[]>(addressQueries.length > 0 ? addressQueries : [empty]);
  }, []);
  useEffect(
    () =>
      address.subscribe(({ params }) => {
        const addressQueries = queriesOf(params);
        if (isSame(paramsOf(addressQueries), paramsOf(queries.peek()))) return;
        queries.value = addressQueries.length > 0 ? addressQueries : [empty];
      }),
    [],
  );
  const change = (next: PanelQuery[]) => {
    queries.value = next;
    setParams(paramsOf(next));
  };
  return { queries, change };
}
