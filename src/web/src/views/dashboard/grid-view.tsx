/** The panels in their grid. In edit mode, pointer and keyboard move and resize panels. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import type { Panel } from "../../api/types";
import { Icon } from "../../parts/icon";
import {
  COLUMNS,
  movePanel,
  placePanel,
  resizePanel,
  ROW_PX,
  areaText,
  type Direction,
  type PlacedPanel,
} from "./grid";

interface Props {
  panels: readonly Panel[];
  isEditing: boolean;
  onPanelsMoved: (panels: Panel[]) => void;
  onAction: (action: PanelAction, panel: Panel) => void;
  render: (panel: Panel) => ComponentChildren;
}

export type PanelAction = "edit" | "copy" | "remove";

interface Drag {
  id: string;
  isResize: boolean;
  /** The position of the pointer in the page. */
  x: number;
  y: number;
  from: readonly Panel[];
}

const DIRECTIONS: Record<string, Direction> = {
  ArrowLeft: "left",
  ArrowRight: "right",
  ArrowUp: "up",
  ArrowDown: "down",
};

export function GridView({ panels, isEditing, onPanelsMoved, onAction, render }: Props) {
  const grid = useRef<HTMLDivElement>(null);
  const drag = useRef<Drag | undefined>(undefined);
  const preview = useSignal<Panel[] | undefined>(undefined);
  const announcement = useSignal("");
  const shown = preview.value ?? inReadingOrder(panels);

  const beginDrag = (event: PointerEvent, panel: Panel, isResize: boolean) => {
    if (event.button !== 0 || !(event.currentTarget instanceof Element)) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    // The order of the elements is fixed during a drag: a moved element would lose the pointer.
    const from = inReadingOrder(panels);
    drag.current = { id: panel.id, isResize, x: event.pageX, y: event.pageY, from };
    preview.value = from;
  };
  const followPointer = (event: PointerEvent) => {
    const dragged = drag.current;
    const column = (grid.current?.clientWidth ?? 0) / COLUMNS;
    const panel = dragged?.from.find(({ id }) => id === dragged.id);
    if (!dragged || !panel || column === 0) return;
    const across = (event.pageX - dragged.x) / column;
    const down = (event.pageY - dragged.y) / ROW_PX;
    const target = dragged.isResize
      ? { w: Math.min(panel.w + across, COLUMNS - panel.x), h: panel.h + down }
      : { x: panel.x + across, y: panel.y + down };
    preview.value = placePanel(dragged.from, dragged.id, target);
    if (event.clientY > innerHeight - 40) scrollBy(0, 16);
    else if (event.clientY < 40) scrollBy(0, -16);
  };
  const endDrag = (isKept: boolean) => {
    const next = preview.peek();
    const dragged = drag.current;
    drag.current = undefined;
    preview.value = undefined;
    if (!isKept || !dragged || !next || !isMoved(dragged.from, next)) return;
    announce(next, dragged.id);
    onPanelsMoved(next);
  };
  const announce = (next: readonly Panel[], id: string) => {
    const panel = next.find((other) => other.id === id);
    if (panel) announcement.value = `${panelLabel(panel)}: ${areaText(panel)}`;
  };
  const moveByKey = (event: KeyboardEvent, panel: Panel) => {
    const direction = DIRECTIONS[event.key];
    if (event.key === "Escape") endDrag(false);
    if (!direction) return;
    event.preventDefault();
    const next = (event.shiftKey ? resizePanel : movePanel)(panels, panel.id, direction);
    if (isMoved(panels, next)) {
      onPanelsMoved(next);
      announce(next, panel.id);
    } else {
      announcement.value = `${panelLabel(panel)} cannot move further ${direction}`;
    }
  };

  return (
    <div class={isEditing ? "grid editing" : "grid"} ref={grid}>
      <h2 class="hidden-text">Panels</h2>
      {shown.map((panel) => (
        <div
          key={panel.id}
          class={`panel ${panel.kind}${drag.current?.id === panel.id ? " dragged" : ""}`}
          style={{
            gridColumn: `${panel.x + 1} / span ${panel.w}`,
            gridRow: `${panel.y + 1} / span ${panel.h}`,
            "--h": panel.h,
          }}
        >
          <div class="panel-box card">
            {isEditing ? (
              <div
                class="panel-bar"
                onPointerDown={(event) => {
                  const isButton = event.target instanceof Element && event.target.closest(".act");
                  if (!isButton) beginDrag(event, panel, false);
                }}
                onPointerMove={followPointer}
                onPointerUp={() => endDrag(true)}
                onPointerCancel={() => endDrag(false)}
              >
                <button
                  type="button"
                  class="button quiet icon-only grip"
                  aria-label={`Move ${panelLabel(panel)}: arrow keys move it, with Shift they resize it`}
                  title="Drag, or arrow keys; with Shift they resize"
                  onKeyDown={(event) => moveByKey(event, panel)}
                >
                  <Icon name="drag" />
                </button>
                <span class="panel-name">{panelLabel(panel)}</span>
                <PanelActions panel={panel} onAction={onAction} />
              </div>
            ) : null}
            <div class="panel-body">{render(panel)}</div>
            {isEditing ? (
              <span
                class="panel-corner"
                aria-hidden="true"
                onPointerDown={(event) => beginDrag(event, panel, true)}
                onPointerMove={followPointer}
                onPointerUp={() => endDrag(true)}
                onPointerCancel={() => endDrag(false)}
              />
            ) : null}
          </div>
        </div>
      ))}
      <p class="hidden-text" role="status">
        {announcement.value}
      </p>
    </div>
  );
}

function PanelActions({ panel, onAction }: { panel: Panel; onAction: Props["onAction"] }) {
  const action = (word: PanelAction, icon: "pencil" | "copy" | "trash", label: string) => (
    <button
      type="button"
      class="button quiet icon-only act"
      aria-label={`${label} ${panelLabel(panel)}`}
      title={label}
      onClick={() => onAction(word, panel)}
    >
      <Icon name={icon} />
    </button>
  );
  return (
    <>
      {action("edit", "pencil", "Edit")}
      {action("copy", "copy", "Duplicate")}
      {action("remove", "trash", "Remove")}
    </>
  );
}

/** The label of a panel without a title. */
export function panelLabel(panel: Panel): string {
  if (panel.title) return panel.title;
  return { text: "Text", row: "Row" }[panel.kind as string] ?? "Chart";
}

function inReadingOrder(panels: readonly Panel[]): Panel[] {
  return [...panels].sort((a, b) => a.y - b.y || a.x - b.x);
}

function isMoved(from: readonly PlacedPanel[], to: readonly PlacedPanel[]): boolean {
  const panelsById = new Map(from.map((panel) => [panel.id, panel]));
  return to.some(({ id, x, y, w, h }) => {
    const previous = panelsById.get(id);
    return previous?.x !== x || previous.y !== y || previous.w !== w || previous.h !== h;
  });
}
