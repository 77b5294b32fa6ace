/** A table with column headers; a table wider than the screen scrolls horizontally. */
import type { ComponentChildren } from "preact";
import { Icon } from "./icon";
import { ScrollX } from "./scroll-x";

export interface Column {
  name: string;
  /** True if the column contains numbers, which are aligned right. */
  isNumber?: boolean;
  /** The sorting by this column; without it, the header is not a button. */
  sort?: { direction: "ascending" | "descending"; isActive: boolean; onSort: () => void };
}

interface Props {
  label: string;
  class?: string;
  /** The columns; a string is the name of a column of texts. */
  columns: readonly (string | Column)[];
  /** The rows. */
  children: ComponentChildren;
}

export function Table({ label, columns, children, ...rest }: Props) {
  return (
    <ScrollX label={label}>
      <table class={rest.class ? `rows ${rest.class}` : "rows"}>
        <thead>
          <tr>
            {columns.map((column) => {
              const { name, ...rest } = typeof column === "string" ? { name: column } : column;
              return <ColumnHeader key={name} name={name} {...rest} />;
            })}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </ScrollX>
  );
}

function ColumnHeader({ name, isNumber, sort }: Column) {
  const order = sort && (sort.isActive ? sort.direction : "none");
  return (
    <th scope="col" class={isNumber ? "num" : undefined} aria-sort={order}>
      {sort ? (
        <button type="button" class="sort" onClick={sort.onSort}>
          {name}
          {sort.isActive && <Icon name={sort.direction === "ascending" ? "up" : "down"} />}
        </button>
      ) : (
        name
      )}
    </th>
  );
}

/** Returns columns of numbers with these names. */
export function numberColumns(...names: readonly string[]): Column[] {
  return names.map((name) => ({ name, isNumber: true }));
}
