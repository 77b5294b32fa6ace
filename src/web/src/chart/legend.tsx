/**
 * The names of a chart's series with their values at the pointed time. Values are written to text
 * nodes once a frame, so that moving the pointer renders nothing. Rows have a constant height, and
 * values a constant width, so that nothing moves under the pointer.
 */
import { useLayoutEffect, useRef } from "preact/hooks";
import { memo } from "./memo";
import { shortText, type Unit } from "../model/units";
import type { Look } from "../model/colours";

/** Longer legends scroll. */
const ROWS_SHORT = 6;

export interface LegendRow {
  key: string;
  label: string;
  /** The full name of the series. */
  fullName: string;
  look: Look;
  unit: Unit;
  shown: boolean;
  /** Whether min and max of each slot are drawn too. */
  hasBand: boolean;
}

/** A row's texts at the pointed time. */
export interface RowValue {
  value: Slot;
  /** The text of the band. */
  min?: Slot;
  max?: Slot;
}

type Slot = number | null | undefined;

/** Writes values to the rows of a legend. */
export class LegendValues {
  private nodes: { value: Text; band: Text | undefined }[] = [];
  private rows: HTMLElement[] = [];
  private nearRow = -1;

  /** Attaches to the rows that are on the page. */
  attach(list: HTMLElement | null): void {
    const rows = list ? [...list.querySelectorAll<HTMLElement>(".legend-row")] : [];
    this.rows = rows;
    this.nearRow = -1;
    const textIn = (cell: Element | null) => {
      const text = document.createTextNode("");
      cell?.replaceChildren(text);
      return cell ? text : undefined;
    };
    this.nodes = rows.map((row) => ({
      value: textIn(row.querySelector(".legend-value")) ?? document.createTextNode(""),
      band: textIn(row.querySelector(".legend-band")),
    }));
  }

  write(read: (row: number) => RowValue | undefined, units: readonly Unit[]): void {
    const set = (node: Text | undefined, text: string) => {
      if (node && node.data !== text) node.data = text;
    };
    this.nodes.forEach(({ value, band }, k) => {
      const [unit, texts] = [units[k], read(k)];
      set(value, unit && texts ? shortText(texts.value, unit) : "");
      set(band, unit && texts && band ? bandText(texts, unit) : "");
    });
  }

  /** Marks the series nearest to the pointer. */
  mark(row: number): void {
    if (row === this.nearRow) return;
    this.rows[this.nearRow]?.classList.remove("is-near");
    this.rows[row]?.classList.add("is-near");
    this.nearRow = row;
  }
}

/** `12 to 18 MiB`: min and max of a slot; empty without them. */
export function bandText({ min, max }: RowValue, unit: Unit): string {
  const isPresent = (slot: Slot) => slot !== null && slot !== undefined;
  return isPresent(min) && isPresent(max)
    ? `${shortText(min, unit)} – ${shortText(max, unit)}`
    : "";
}

interface LegendProps {
  rows: LegendRow[];
  onRowClick: (key: string, isShift: boolean) => void;
  /** Called when the rows change. */
  onRowsChange: (list: HTMLElement | null) => void;
}

export const Legend = memo(function Legend({ rows, onRowClick, onRowsChange }: LegendProps) {
  const list = useRef<HTMLUListElement>(null);
  useLayoutEffect(() => onRowsChange(list.current), [rows]);
  const hasBands = rows.some(({ hasBand }) => hasBand);
  const classes = ["legend", rows.length > ROWS_SHORT && "is-long", hasBands && "has-bands"];
  return (
    <ul class={classes.filter(Boolean).join(" ")} ref={list}>
      {rows.map((row) => (
        <li key={row.key} class={row.shown ? "legend-row" : "legend-row is-hidden"}>
          <button
            type="button"
            class="legend-name"
            aria-pressed={row.shown}
            title={`${row.fullName}\nClick: show only this series. Shift-click: hide it.`}
            onClick={(event) => onRowClick(row.key, event.shiftKey)}
          >
            <Swatch look={row.look} />
            <span class="legend-label">{row.label}</span>
          </button>
          <span class="legend-value" />
          {hasBands && <span class="legend-band" title="Min and max of the slot" />}
        </li>
      ))}
    </ul>
  );
});

/** A short sample of the series' line. */
function Swatch({ look }: { look: Look }) {
  return (
    <svg class="swatch" viewBox="0 0 16 8" aria-hidden="true">
      <line
        x1="0"
        x2="16"
        y1="4"
        y2="4"
        stroke={look.colour}
        stroke-width="3"
        stroke-dasharray={
          look.dash.length > 0 ? look.dash.map((n) => n / 1.5).join(" ") : undefined
        }
      />
    </svg>
  );
}
