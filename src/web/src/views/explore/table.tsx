/** The drawn values as tables: a row for each series, or a row for each slot. */
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { param, setParams } from "../../app/address";
import type { ChartData, DrawnSeries } from "../../chart/data";
import { seriesName } from "../../chart/data";
import { completeCount } from "../../chart/open-slot";
import { saveTable, tableOf } from "../../chart/save";
import { valueText } from "../../model/units";
import { clockAt, dateText, timeText } from "../../model/zone";
import { copyText } from "../../parts/clipboard";
import { Icon } from "../../parts/icon";
import { nextOrder, rowOrder, summaryOf, type Order, type Summary } from "../../queries/summary";

const tableForm = param("table", "series");

export function DataTable({ data, title }: { data: ChartData; title: string }) {
  const copied = useSignal(false);
  const allShown = data.series.map(() => true);
  const isRows = tableForm.value === "rows";
  const showForm = (next: string | undefined) => setParams({ table: next }, { replace: true });
  const copyAll = async () => {
    await copyText(tableOf(data, allShown));
    copied.value = true;
    setTimeout(() => (copied.value = false), 1500);
  };
  return (
    <section class="card table-card" aria-label="Table">
      <div class="card-head">
        <div class="choices" role="group" aria-label="Table of">
          <button type="button" aria-pressed={!isRows} onClick={() => showForm(undefined)}>
            Series
          </button>
          <button type="button" aria-pressed={isRows} onClick={() => showForm("rows")}>
            Values
          </button>
        </div>
        <span class="muted num table-count">
          {isRows
            ? `${data.times.length.toLocaleString()} slots`
            : `${data.series.length.toLocaleString()} series`}
        </span>
        <button type="button" class="button quiet" onClick={() => void copyAll()}>
          <Icon name={copied.value ? "check" : "copy"} />
          <span role="status">{copied.value ? "Copied" : "Copy"}</span>
        </button>
        <button type="button" class="button quiet" onClick={() => saveTable(title, data, allShown)}>
          <Icon name="download" /> CSV
        </button>
      </div>
      {isRows ? <SlotTable data={data} /> : <SummaryTable data={data} />}
    </section>
  );
}

interface HeadProps {
  label: string;
  title?: string;
  column: number;
  order: Order;
  isNumber: boolean;
  onOrder: (order: Order) => void;
}

function Head({ label, title, column, order, isNumber, onOrder }: HeadProps) {
  const isSorted = order.column === column;
  return (
    <th
      scope="col"
      class={isNumber ? "num" : undefined}
      aria-sort={isSorted ? (order.isDescending ? "descending" : "ascending") : undefined}
    >
      <button type="button" title={title} onClick={() => onOrder(nextOrder(order, column))}>
        <span>{label}</span>
        {isSorted ? <Icon name={order.isDescending ? "down" : "up"} /> : null}
      </button>
    </th>
  );
}

const NUMBERS: readonly { key: keyof Summary; label: string }[] = [
  { key: "last", label: "Last" },
  { key: "min", label: "Min" },
  { key: "max", label: "Max" },
  { key: "avg", label: "Average" },
];

/** A row for each series. */
function SummaryTable({ data }: { data: ChartData }) {
  const order = useSignal<Order>({ column: -1, isDescending: false });
  const summaries = useMemo(() => {
    // An incomplete slot is left out: it would be the minimum.
    const complete = completeCount(data.times, data.incompleteFrom);
    return data.series.map(({ values }) => summaryOf(values.slice(0, complete)));
  }, [data]);
  const key = NUMBERS[order.value.column]?.key ?? "last";
  const rowIndexes = rowOrder(data.series.length, order.value, (row) => summaries[row]?.[key]);
  const head = { order: order.value, onOrder: (next: Order) => (order.value = next) };
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label="Series">
      <table class="rows data-table">
        <thead>
          <tr>
            <Head label="Series" column={-1} isNumber={false} {...head} />
            {NUMBERS.map(({ label }, column) => (
              <Head key={label} label={label} column={column} isNumber {...head} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rowIndexes.map((rowIndex) => {
            const [series, summary] = [data.series[rowIndex], summaries[rowIndex]];
            if (!series || !summary) return null;
            return (
              <tr key={series.key}>
                <th scope="row" title={fullName(series)}>
                  {series.label}
                </th>
                {NUMBERS.map(({ key: number }) => (
                  <td key={number} class="num">
                    {valueText(summary[number], series.unit)}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function fullName({ metric, tags, label }: DrawnSeries): string {
  return metric ? seriesName(metric, tags) : label;
}

/** The row height, as in the styles. */
const ROW_PX = 32;
/** The number of rows drawn beyond the visible rows, on each side. */
const EXTRA_ROWS = 12;
/** The window of drawn rows moves in steps of this many rows. */
const STEP_PX = 6 * ROW_PX;

/** A row for each slot; only the visible rows are drawn. */
function SlotTable({ data }: { data: ChartData }) {
  const order = useSignal<Order>({ column: -1, isDescending: true });
  const visible = useSignal({ top: 0, height: 480 });
  const container = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = container.current;
    if (!element) return;
    const update = () => {
      const top = Math.floor(element.scrollTop / STEP_PX) * STEP_PX;
      const { top: before, height } = visible.peek();
      if (top === before && height === element.clientHeight) return;
      visible.value = { top, height: element.clientHeight };
    };
    update();
    element.addEventListener("scroll", update, { passive: true });
    return () => element.removeEventListener("scroll", update);
  }, []);
  const rowIndexes = useMemo(
    () =>
      rowOrder(data.times.length, order.value, (row) => {
        return data.series[order.value.column]?.values[row];
      }),
    [data, order.value],
  );
  const first = Math.max(0, Math.floor(visible.value.top / ROW_PX) - EXTRA_ROWS);
  const last = Math.min(
    rowIndexes.length,
    Math.ceil((visible.value.top + visible.value.height) / ROW_PX) + EXTRA_ROWS,
  );
  const head = { order: order.value, onOrder: (next: Order) => (order.value = next) };
  const { zone } = data.window;
  const complete = completeCount(data.times, data.incompleteFrom);
  return (
    <div class="table-scroll high" ref={container} tabIndex={0} role="region" aria-label="Values">
      <table class="rows data-table" aria-rowcount={rowIndexes.length + 1}>
        <thead>
          <tr>
            <Head label="Time" column={-1} isNumber={false} {...head} />
            {data.series.map((series, column) => (
              <Head
                key={series.key}
                label={series.label}
                title={fullName(series)}
                column={column}
                isNumber
                {...head}
              />
            ))}
          </tr>
        </thead>
        <tbody>
          <Space rows={first} columns={data.series.length + 1} />
          {rowIndexes.slice(first, last).map((row, at) => {
            const clock = clockAt(zone, data.times[row] ?? 0);
            return (
              <tr key={row} aria-rowindex={first + at + 2}>
                <th scope="row">
                  {dateText(clock)} {timeText(clock)}
                  {row >= complete ? <span class="muted"> not over yet</span> : null}
                </th>
                {data.series.map(({ key, values, unit }) => (
                  <td key={key} class="num">
                    {valueText(values[row], unit)}
                  </td>
                ))}
              </tr>
            );
          })}
          <Space rows={rowIndexes.length - last} columns={data.series.length + 1} />
        </tbody>
      </table>
    </div>
  );
}

/** The space of rows that are not drawn. */
function Space({ rows, columns }: { rows: number; columns: number }) {
  if (rows <= 0) return null;
  return (
    <tr class="table-space" aria-hidden="true">
      <td colSpan={columns} style={{ height: `${rows * ROW_PX}px` }} />
    </tr>
  );
}
