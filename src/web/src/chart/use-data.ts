/** The data of a chart's queries for other drawings, loaded while the element is near the viewport. */
import { signal, type ReadonlySignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { useSteady } from "../app/steady";
import { specOf, type ChartSpecProps } from "./chart-spec";
import type { Comparison } from "./compare";
import type { TimeFrame } from "./frame";
import { Loader } from "./loader";

/** An element within this distance of the viewport is loaded. */
const LOAD_WITHIN_PX = 200;
const NO_COMPARISON: ReadonlySignal<Comparison | undefined> = signal(undefined);

interface LoadedData {
  loader: Loader;
  /** The element whose distance from the viewport decides. */
  root: RefObject<HTMLElement | null>;
}

export function useChartData(frame: TimeFrame, props: ChartSpecProps): LoadedData {
  const spec = useSteady(specOf(props));
  const specSignal = useMemo(() => signal(spec), [frame]);
  const loader = useMemo(() => new Loader(frame, specSignal, NO_COMPARISON), [frame]);
  useLayoutEffect(() => void (specSignal.value = spec), [specSignal, spec]);
  const root = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const stop = loader.run();
    const observer = new IntersectionObserver(
      (entries) => (loader.isNear.value = entries.at(-1)?.isIntersecting ?? false),
      { rootMargin: `${LOAD_WITHIN_PX}px` },
    );
    if (root.current) observer.observe(root.current);
    return () => {
      stop();
      observer.disconnect();
    };
  }, [loader]);
  return { loader, root };
}
