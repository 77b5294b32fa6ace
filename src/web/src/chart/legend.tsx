/**
 * The names of a chart's series with their values at the pointed time. Values are written to text
 * nodes once a frame, so that moving the pointer renders nothing. Rows have a constant height, and
 * values a constant width, so that nothing moves under the pointer.
 */
import { useLayoutEffect, useRef } from "preact/hooks";
import { Icon } from "../parts/icon";
import { headAndTail } from "./labels";
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
  /** True if min and max of each slot are drawn too. */
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
  /** By series; rows may have another order. */
  private readonly nodes = new Map<number, { value: Text; band: Text | undefined }>();
  private readonly rows = new Map<number, HTMLElement>();
  private nearRow = -1;

  /** Attaches to the rows that are on the page. */
  attach(list: HTMLElement | null): void {
    this.nodes.clear();
    this.rows.clear();
    this.nearRow = -1;
    const textIn = (cell: Element | null) => {
      const text = document.createTextNode("");
      cell?.replaceChildren(text);
      return cell ? text : undefined;
    };
    for (const row of list?.querySelectorAll<HTMLElement>(".legend-row") ?? []) {
      const series = Number(row.dataset["series"]);
      this.rows.set(series, row);
      this.nodes.set(series, {
        value: textIn(row.querySelector(".legend-value")) ?? document.createTextNode(""),
        band: textIn(row.querySelector(".legend-band")),
      });
    }
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
    this.rows.get(this.nearRow)?.classList.remove("is-near");
    this.rows.get(row)?.classList.add("is-near");
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
  /** The indexes of the rows in their order. */
  order: readonly number[];
  /** The number of series that are not drawn. */
  restCount: number;
  /** True if the chart is a heat map, which shows all series. */
  isHeat: boolean;
  /** The maximum number of rows of a legend that does not fold. */
  unfoldedMax: number;
  /** True if the reader unfolded the legend; `undefined` until the reader chooses. */
  isOpen: boolean | undefined;
  onToggle: (isOpen: boolean) => void;
  onRowClick: (key: string, isShift: boolean) => void;
  /** Called when the rows change. */
  onRowsChange: (list: HTMLElement | null) => void;
}

export const Legend = memo(function Legend(props: LegendProps) {
  const { rows, order, restCount, unfoldedMax, onRowClick, onRowsChange } = props;
  const list = useRef<HTMLUListElement>(null);
  const folds = rows.length > unfoldedMax;
  const isOpen = !folds || props.isOpen === true;
  useLayoutEffect(() => onRowsChange(list.current), [rows, order, isOpen]);
  const hasBands = rows.some(({ hasBand }) => hasBand);
  const classes = ["legend", rows.length > ROWS_SHORT && "is-long", hasBands && "has-bands"];
  return (
    <>
      {folds && (
        <button
          type="button"
          class="legend-fold"
          aria-expanded={isOpen}
          onClick={() => props.onToggle(!isOpen)}
        >
          <Icon name={isOpen ? "down" : "right"} />
          {countText(rows, restCount, props.isHeat)}
          {props.isHeat && <HeatScale />}
        </button>
      )}
      {isOpen && (
        <ul class={classes.filter(Boolean).join(" ")} ref={list}>
          {order.map((k) => {
            const row = rows[k];
            return row && <Row key={row.key} {...{ row, series: k, hasBands, onRowClick }} />;
          })}
        </ul>
      )}
    </>
  );
});

/** `20 series`, `3 of 20 series shown`, `100 of 200 series, by value now` */
export function countText(
  rows: readonly Pick<LegendRow, "shown">[],
  restCount: number,
  isHeat: boolean,
): string {
  const shown = rows.filter((row) => row.shown).length;
  const all = `${rows.length + restCount} series`;
  if (shown < rows.length) return `${shown} of ${all} shown`;
  if (restCount === 0) return all;
  return isHeat
    ? `${all}, ${rows.length} listed by value now`
    : `${rows.length} of ${all}, by value now`;
}

/** The meaning of a heat map's shades. */
function HeatScale() {
  return (
    <span class="heat-scale">
      few <i aria-hidden="true" /> many per cell
    </span>
  );
}

interface RowProps {
  row: LegendRow;
  /** The index of the series. */
  series: number;
  hasBands: boolean;
  onRowClick: (key: string, isShift: boolean) => void;
}

function Row({ row, series, hasBands, onRowClick }: RowProps) {
  const [head, tail] = headAndTail(row.label);
  return (
    <li class={row.shown ? "legend-row" : "legend-row is-hidden"} data-series={series}>
      <button
        type="button"
        class="legend-name"
        aria-pressed={row.shown}
        title={`${row.fullName}\nClick: show only this series. Shift-click: hide it.`}
        onClick={(event) => onRowClick(row.key, event.shiftKey)}
      >
        <Swatch look={row.look} />
        {tail === "" ? (
          <span class="legend-label">{head}</span>
        ) : (
          <span class="legend-label cut-name">
            <span class="cut-head">{head}</span>
            <span class="cut-tail">{tail}</span>
          </span>
        )}
      </button>
      <span class="legend-value" />
      {hasBands && <span class="legend-band" title="Min and max of the slot" />}
    </li>
  );
}

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
