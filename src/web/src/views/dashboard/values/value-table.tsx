/** A row for each series: its tags and its value, sorted by a column. */
import { useSignal } from "@preact/signals";
import type { Reduction } from "../../../api/types";
import { Table, type Column } from "../../../parts/table";
import { LevelValue } from "./level";
import { REDUCTIONS, type ReducedSeries } from "./reduce";

interface Props {
  found: readonly ReducedSeries[];
  reduce: Reduction | undefined;
}

type Direction = "ascending" | "descending";

export function ValueTable({ found, reduce = "last" }: Props) {
  const order = useSignal<{ column: string; direction: Direction }>({
    column: VALUE,
    direction: "descending",
  });
  const names = tagNames(found);
  const { column, direction } = order.value;
  const sign = direction === "ascending" ? 1 : -1;
  const sorted = [...found].sort((a, b) => sign * compare(a, b, column));
  const header = (key: string, name: string, isNumber: boolean): Column => ({
    name,
    isNumber,
    sort: {
      direction,
      isActive: column === key,
      onSort: () => {
        const isSame = column === key && direction === "descending";
        order.value = { column: key, direction: isSame ? "ascending" : "descending" };
      },
    },
  });
  const value = REDUCTIONS.find((known) => known.value === reduce)?.label ?? "Value";
  return (
    <Table
      label="Values by series"
      columns={[
        ...(names.length === 0
          ? [header(LABEL, "Series", false)]
          : names.map((name) => header(name, name, false))),
        header(VALUE, value, true),
      ]}
    >
      {sorted.map(({ series, value, level }) => (
        <tr key={series.key}>
          {(names.length === 0 ? [LABEL] : names).map((name) => (
            <td key={name}>{textOf(series, name)}</td>
          ))}
          <td class="num">
            <LevelValue value={value} unit={series.unit} level={level} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** Keys of the columns that are no tags: no tag has such a name. */
const VALUE = "\nvalue";
const LABEL = "\nlabel";

/** The tags that differ between the series; all of them, if there is one series. */
function tagNames(found: readonly ReducedSeries[]): string[] {
  const all = [...new Set(found.flatMap(({ series }) => Object.keys(series.tags)))].sort();
  const values = (name: string) => new Set(found.map(({ series }) => series.tags[name])).size;
  return found.length === 1 ? all : all.filter((name) => values(name) > 1);
}

function textOf(series: ReducedSeries["series"], name: string): string {
  return name === LABEL ? series.label : (series.tags[name] ?? "");
}

function compare(a: ReducedSeries, b: ReducedSeries, column: string): number {
  if (column === VALUE) return (a.value ?? -Infinity) - (b.value ?? -Infinity);
  return textOf(b.series, column).localeCompare(textOf(a.series, column));
}
