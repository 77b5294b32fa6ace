/** A table with column headers; a table wider than the screen scrolls horizontally. */
import type { ComponentChildren } from "preact";
import { Icon } from "./icon";
import { ScrollX } from "./scroll-x";

export interface Head {
  name: string;
  /** Whether the column contains numbers, which are aligned right. */
  isNumber?: boolean;
  /** How the column sorts the rows; without it, the header is no button. */
  sort?: { direction: "ascending" | "descending"; isBy: boolean; onSort: () => void };
}

interface Props {
  label: string;
  class?: string;
  /** The columns; a string is the name of a column of texts. */
  heads: readonly (string | Head)[];
  /** The rows. */
  children: ComponentChildren;
}

export function Table({ label, heads, children, ...rest }: Props) {
  return (
    <ScrollX label={label}>
      <table class={rest.class ? `rows ${rest.class}` : "rows"}>
        <thead>
          <tr>
            {heads.map((head) => {
              const column: Head = typeof head === "string" ? { name: head } : head;
              return <ColumnHeader key={column.name} {...column} />;
            })}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </ScrollX>
  );
}

function ColumnHeader({ name, isNumber, sort }: Head) {
  const order = sort && (sort.isBy ? sort.direction : "none");
  return (
    <th scope="col" class={isNumber ? "num" : undefined} aria-sort={order}>
      {sort ? (
        <button type="button" class="sort" onClick={sort.onSort}>
          {name}
          {sort.isBy && <Icon name={sort.direction === "ascending" ? "up" : "down"} />}
        </button>
      ) : (
        name
      )}
    </th>
  );
}

/** Returns columns of numbers with these names. */
export function numbers(...names: readonly string[]): Head[] {
  return names.map((name) => ({ name, isNumber: true }));
}
