/** A chart: head, plot, legend. `live.ts` handles everything that follows the pointer. */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { setParams } from "../app/address";
import { useSteady } from "../app/steady";
import { Icon } from "../parts/icon";
import { narrow } from "../parts/narrow";
import type { ChartData, Failure } from "./data";
import type { TimeFrame } from "./frame";
import { Legend } from "./legend";
import { LiveChart } from "./live";
import { More } from "./more";
import { Notes, Notice } from "./notice";
import type { MovableThreshold } from "./threshold-drag";
import { unitText } from "../model/units";
import { isolateSeries, toggleSeries, writeState, type ChartState } from "./state";
import { specOf, type ChartSpecProps } from "./chart-spec";

export interface ChartProps extends ChartSpecProps {
  /** The frame shared by all charts of the view. */
  frame: TimeFrame;
  /** True if the chart fills the height of its container. */
  fill?: boolean | undefined;
  /** Additional buttons in its head. */
  actions?: ComponentChildren;
  /** The threshold that the reader can move; one of the thresholds has the same value. */
  movable?: MovableThreshold | undefined;
  /** Called with each answer. */
  onData?: ((data: ChartData) => void) | undefined;
  /** Called with the failed queries and their errors. */
  onFailures?: ((failures: Failure[]) => void) | undefined;
}

/** Writes the reader's changes to the address. */
function saveState(id: string, state: ChartState): void {
  setParams(writeState(state, id), { replace: true });
}

export function Chart(props: ChartProps) {
  // No closure here holds `props`: effects outlive a drawing and would keep its elements alive.
  const { title, frame, movable, onData, onFailures } = props;
  const spec = useSteady(specOf(props));
  const live = useMemo(() => new LiveChart(frame, spec), [frame, title]);
  useLayoutEffect(() => void (live.spec.value = spec), [live, spec]);
  useLayoutEffect(() => void (live.movable = movable), [live, movable]);

  const root = useRef<HTMLElement>(null);
  const plot = useRef<HTMLDivElement>(null);
  const overlay = useRef<HTMLDivElement>(null);
  const time = useRef<HTMLSpanElement>(null);
  const tip = useRef<HTMLDivElement>(null);
  const spoken = useRef<HTMLDivElement>(null);
  const changeState = (next: Partial<ChartState>) =>
    saveState(live.spec.peek().id, { ...live.state.peek(), ...next });
  const toggleFull = () => toggleFullScreen(root.current, live.state.peek().full, changeState);

  // Before the first paint: requests start while the page is drawn.
  useLayoutEffect(() => {
    const elements = {
      root: root.current,
      plot: plot.current,
      overlay: overlay.current,
      time: time.current,
      tip: tip.current,
      spoken: spoken.current,
    };
    if (Object.values(elements).some((element) => element === null)) return;
    return live.mount(elements as Parameters<LiveChart["mount"]>[0], toggleFull);
  }, [live]);
  useEffect(() => {
    return live.loader.data.subscribe((data) => data && onData?.(data));
  }, [live, onData]);
  useEffect(() => {
    return live.loader.failures.subscribe((failures) => onFailures?.(failures));
  }, [live, onFailures]);
  useLeaveFullScreen(live.state.value.full, () => changeState({ full: false }));

  const onRow = useMemo(
    () => (key: string, isShift: boolean) => {
      const { id } = live.spec.peek();
      const keys = live.rows.peek().map((row) => row.key);
      const state = live.state.peek();
      saveState(id, isShift ? toggleSeries(state, key, keys) : isolateSeries(state, key));
    },
    [live],
  );
  const onToggle = useMemo(
    () => (isOpen: boolean) =>
      saveState(live.spec.peek().id, { ...live.state.peek(), legend: isOpen || undefined }),
    [live],
  );
  const { full } = live.state.value;
  const classes = ["chart", "card", props.fill && "is-fill", full && "is-full"];
  return (
    <section
      class={classes.filter(Boolean).join(" ")}
      aria-label={title}
      data-chart={title}
      ref={root}
    >
      <header class="chart-head">
        <h3 title={title}>{title}</h3>
        <SharedUnit live={live} />
        <span class="chart-time num" ref={time} />
        <div class="chart-actions">
          {props.actions}
          <button
            type="button"
            class="button quiet icon-only"
            aria-label={full ? "Leave full screen" : "Full screen"}
            title={full ? "Leave full screen" : "Full screen (F)"}
            aria-pressed={full}
            onClick={toggleFull}
          >
            <Icon name={full ? "close" : "expand"} />
          </button>
          <More live={live} changeState={changeState} />
        </div>
      </header>
      <div class="chart-plot" ref={plot}>
        <div
          class="plot-over"
          ref={overlay}
          tabIndex={0}
          role="application"
          aria-roledescription="chart"
          aria-label={`${title}. Arrow keys read values, plus and minus zoom, 0 goes back, M ranks what moved, F fills the screen.`}
        />
        <div class="plot-tip" ref={tip} hidden />
        <Notice live={live} />
      </div>
      <Legend
        rows={live.rows.value}
        order={live.order.value}
        restCount={live.loader.data.value?.rest.length ?? 0}
        isHeat={live.isHeat.value}
        unfoldedMax={unfoldedMax(props.fill ?? false, full)}
        isOpen={live.state.value.legend}
        onToggle={onToggle}
        onRowClick={onRow}
        onRowsChange={live.attachLegend}
      />
      <Notes live={live} />
      <div class="hidden-text" aria-live="polite" ref={spoken} />
    </section>
  );
}

/** The maximum number of rows of an unfolded legend: the plot has at least 60 % of the chart. */
function unfoldedMax(isFilling: boolean, isFull: boolean): number {
  if (isFull) return 20;
  if (narrow.value) return isFilling ? 2 : 3;
  return isFilling ? 4 : 6;
}

/** The unit of all series, if their values do not include it. */
function SharedUnit({ live }: { live: LiveChart }) {
  const names = new Set(live.rows.value.map(({ unit }) => unitText(unit)));
  const [name] = names;
  return names.size === 1 && name ? <span class="chart-unit muted">{name}</span> : null;
}

function toggleFullScreen(
  root: HTMLElement | null,
  isFull: boolean,
  changeState: (next: Partial<ChartState>) => void,
): void {
  if (isFull) {
    changeState({ full: false });
    if (document.fullscreenElement) void document.exitFullscreen();
    return;
  }
  changeState({ full: true });
  // When the browser refuses full screen, the chart fills the page.
  root?.requestFullscreen().catch(() => undefined);
}

/** Escape leaves full screen, even when the chart only fills the page. */
function useLeaveFullScreen(isFull: boolean, leave: () => void): void {
  useEffect(() => {
    if (!isFull) return;
    const onFullScreenChange = () => {
      if (!document.fullscreenElement) leave();
    };
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented) return;
      leave();
      // A browser that passes the key to the page stays in full screen.
      if (document.fullscreenElement) void document.exitFullscreen();
    };
    document.addEventListener("fullscreenchange", onFullScreenChange);
    document.addEventListener("keydown", onKeyDown);
    return () => {
      document.removeEventListener("fullscreenchange", onFullScreenChange);
      document.removeEventListener("keydown", onKeyDown);
    };
  }, [isFull]);
}
