/** The partitions as a table. */
import { useSignal } from "@preact/signals";
import type { StorageAnswer } from "../../api/types";
import { preferredZone } from "../../app/preferences";
import { bytesText, countText, inText } from "../../model/words";
import { Table, numberColumns } from "../../parts/table";
import { Meter } from "../status/meter";
import { shareOf } from "../status/shares";
import { STATE_TEXTS } from "./lane";
import { spanText } from "./times";

const COLUMNS = [
  "Granularity",
  "Time",
  "State",
  ...numberColumns("Documents", "Shells", "Bytes"),
  "Dropped",
  "File",
];

export function PartitionTable({ storage }: { storage: StorageAnswer }) {
  const isOpen = useSignal(false);
  const rows = storage.granularities.flatMap((lane) =>
    [...lane.partitions].reverse().map((partition) => ({ name: lane.name, partition })),
  );
  if (rows.length === 0) return null;
  const most = Math.max(...rows.map(({ partition }) => partition.bytes));
  return (
    <details
      class="as-table"
      open={isOpen.value}
      onToggle={(event) => (isOpen.value = event.currentTarget.open)}
    >
      <summary>As a table, {rows.length} rows</summary>
      {isOpen.value && (
        <Table label="Partitions" columns={COLUMNS}>
          {rows.map(({ name, partition }) => (
            <tr key={partition.file}>
              <th scope="row">{name}</th>
              <td class="num-left">
                {spanText(preferredZone.value, partition.start, partition.end, storage.now)}
              </td>
              <td>
                <span class="state-cell">
                  <span class={`block-swatch block-${partition.state}`} aria-hidden="true">
                    <span class="block-fill" />
                  </span>
                  {STATE_TEXTS[partition.state].word}
                </span>
              </td>
              <td class="num">{countText(partition.documents)}</td>
              <td class="num">{countText(partition.shells)}</td>
              <td class="num bytes-cell">
                {bytesText(partition.bytes)}
                <Meter share={shareOf(partition.bytes, most)} plain />
              </td>
              <td class="num-left">{inText(partition.dropped_at - storage.now)}</td>
              <td>
                <code>{partition.file}</code>
              </td>
            </tr>
          ))}
        </Table>
      )}
    </details>
  );
}
