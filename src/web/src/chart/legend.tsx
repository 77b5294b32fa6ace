/**
 * The names of a chart's series with their values at the pointed time. Values are written into text
 * nodes, once a frame, so that moving the pointer renders nothing; a row has one height, and a value
 * one width, so that nothing moves under it.
 */
import { useLayoutEffect, useRef } from "preact/hooks";
import { memo } from "./memo";
import { shortText, type Unit } from "../model/units";
import type { Look } from "../model/colours";

/** More rows than this may not fit, and are scrolled. */
const ROWS_SHORT = 6;

export interface LegendRow {
  key: string;
  label: string;
  /** All that is known of the series' name. */
  full: string;
  look: Look;
  unit: Unit;
  shown: boolean;
}

/** Writes values into the rows of a legend. */
export class LegendValues {
  private nodes: Text[] = [];
  private rows: HTMLElement[] = [];
  private near = -1;

  /** Takes over the rows that are on the page now. */
  attach(list: HTMLElement | null): void {
    const rows = list ? [...list.querySelectorAll<HTMLElement>(".legend-row")] : [];
    this.rows = rows;
    this.near = -1;
    this.nodes = rows.map((row) => {
      const cell = row.querySelector(".legend-value");
      const text = document.createTextNode("");
      cell?.replaceChildren(text);
      return text;
    });
  }

  write(read: (row: number) => number | null | undefined, units: readonly Unit[]): void {
    this.nodes.forEach((node, k) => {
      const unit = units[k];
      const text = unit ? shortText(read(k), unit) : "";
      if (node.data !== text) node.data = text;
    });
  }

  /** Marks the row of the series that is nearest to the pointer. */
  mark(row: number): void {
    if (row === this.near) return;
    this.rows[this.near]?.classList.remove("is-near");
    this.rows[row]?.classList.add("is-near");
    this.near = row;
  }
}

interface LegendProps {
  rows: LegendRow[];
  onRow: (key: string, isShift: boolean) => void;
  /** Called when the rows on the page are others. */
  onRows: (list: HTMLElement | null) => void;
}

export const Legend = memo(function Legend({ rows, onRow, onRows }: LegendProps) {
  const list = useRef<HTMLUListElement>(null);
  useLayoutEffect(() => onRows(list.current), [rows]);
  return (
    <ul class={rows.length > ROWS_SHORT ? "legend is-long" : "legend"} ref={list}>
      {rows.map((row) => (
        <li key={row.key} class={row.shown ? "legend-row" : "legend-row is-hidden"}>
          <button
            type="button"
            class="legend-name"
            aria-pressed={row.shown}
            title={`${row.full}\nClick: this one alone. Shift-click: hide it.`}
            onClick={(event) => onRow(row.key, event.shiftKey)}
          >
            <Swatch look={row.look} />
            <span class="legend-label">{row.label}</span>
          </button>
          <span class="legend-value" />
        </li>
      ))}
    </ul>
  );
});

/** A short piece of the series' line. */
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
