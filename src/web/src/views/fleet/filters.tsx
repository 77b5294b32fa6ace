/** The filters of the fleet: a search, and tag values with their number of hosts. */
import { useSignal, type Signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { setParams } from "../../app/address";
import { Icon } from "../../parts/icon";
import { Search } from "../../parts/search";
import { nextSort, withTag } from "./choice";
import { COLUMNS, tagCounts, type Choice, type Row, type TagCounts } from "./order";
import { COLUMN_NAMES } from "./columns";

/** The maximum number of chips in the row; the button shows all other chips. */
const CHIPS_MAX = 12;
/** The maximum number of listed values of a tag, sorted by their number of hosts. */
const VALUES_MAX = 50;

export function Filters({ rows, choice }: { rows: Row[]; choice: Choice }) {
  const tags = useMemo(() => tagCounts(rows, choice), [rows, choice]);
  const isOpen = useSignal(false);
  return (
    <>
      <div class="fleet-filters">
        <Search
          label="Search hosts"
          placeholder="Name or tag"
          param="q"
          text={choice.q}
          shortcut="/"
        />
        <SortBy choice={choice} />
        {tags.length > 0 && <TagChips tags={tags} choice={choice} isOpen={isOpen} />}
      </div>
      {isOpen.value && <AllTags tags={tags} choice={choice} />}
    </>
  );
}

/** Replaces the column headers where hosts are cards. */
function SortBy({ choice }: { choice: Choice }) {
  return (
    <label class="field sort-by">
      <span class="hidden-text">Sort by</span>
      <select
        value={choice.column}
        onChange={(event) => {
          const column = COLUMNS.find((column) => column === event.currentTarget.value);
          if (column) setParams({ sort: nextSort(choice, column) });
        }}
      >
        {COLUMNS.map((column) => (
          <option key={column} value={column}>
            By {COLUMN_NAMES[column].long}
          </option>
        ))}
      </select>
    </label>
  );
}

interface Chip {
  name: string;
  value: string;
  hosts: number;
  chosen: boolean;
}

interface ChipsProps {
  tags: TagCounts[];
  choice: Choice;
  /** True if all tags are shown. */
  isOpen: Signal<boolean>;
}

function TagChips({ tags, choice, isOpen }: ChipsProps) {
  const chipsOf = ({ name, values }: TagCounts) =>
    values.map((value): Chip => ({ name, ...value }));
  const chosen = tags.flatMap(chipsOf).filter((chip) => chip.chosen);
  const common: Chip[] = [];
  for (const tag of tags) {
    // The row shows all values of a tag or none; chips of a tag that differs for each host are
    // useless.
    const others = chipsOf(tag).filter((chip) => !chip.chosen && chip.hosts > 0);
    if (common.length + others.length <= CHIPS_MAX) common.push(...others);
  }
  return (
    <div class="chips" role="group" aria-label="Filter by tag">
      <button
        type="button"
        class="chip"
        aria-expanded={isOpen.value}
        aria-controls="fleet-tags"
        onClick={() => (isOpen.value = !isOpen.value)}
      >
        All tags
        <Icon name={isOpen.value ? "up" : "down"} />
      </button>
      {[...chosen, ...common].map((chip) => (
        <TagChip key={`${chip.name}=${chip.value}`} chip={chip} choice={choice} />
      ))}
      {chosen.length > 0 && (
        <button
          type="button"
          class="button quiet small"
          onClick={() => setParams({ tags: undefined })}
        >
          Clear tags
        </button>
      )}
    </div>
  );
}

function TagChip({ chip, choice, short }: { chip: Chip; choice: Choice; short?: boolean }) {
  return (
    <button
      type="button"
      class="chip"
      aria-pressed={chip.chosen}
      onClick={() => setParams({ tags: withTag(choice.tags, chip.name, chip.value) })}
    >
      <span class="chip-text">{short ? chip.value : `${chip.name}=${chip.value}`}</span>
      <span class="chip-count num">{chip.hosts.toLocaleString("en")}</span>
      {chip.chosen && <Icon name="close" />}
    </button>
  );
}

function AllTags({ tags, choice }: { tags: TagCounts[]; choice: Choice }) {
  return (
    <section class="card all-tags" id="fleet-tags" aria-label="All tags">
      {tags.map(({ name, values }) => (
        <fieldset key={name}>
          <legend>{name}</legend>
          <div class="tag-values">
            {values.slice(0, VALUES_MAX).map((value) => (
              <TagChip key={value.value} chip={{ name, ...value }} choice={choice} short />
            ))}
          </div>
          {values.length > VALUES_MAX && (
            <p class="muted">
              and {(values.length - VALUES_MAX).toLocaleString("en")} more values: search
            </p>
          )}
        </fieldset>
      ))}
    </section>
  );
}
