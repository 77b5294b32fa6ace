/** The same partitions as a table. */
import { useSignal } from "@preact/signals";
import type { StorageAnswer } from "../../api/types";
import { preferredZone } from "../../app/preferences";
import { bytesText, countText, inText } from "../../model/words";
import { ScrollX } from "../../parts/scroll-x";
import { Meter } from "../status/meter";
import { shareOf } from "../status/shares";
import { STATE_TEXTS } from "./lane";
import { spanText } from "./times";

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
      <summary>The same as a table, {rows.length} rows</summary>
      {isOpen.value && (
        <ScrollX label="Partitions">
          <table class="rows">
            <thead>
              <tr>
                <th scope="col">Granularity</th>
                <th scope="col">Time</th>
                <th scope="col">State</th>
                <th scope="col" class="num">
                  Documents
                </th>
                <th scope="col" class="num">
                  Shells
                </th>
                <th scope="col" class="num">
                  Bytes
                </th>
                <th scope="col">Dropped</th>
                <th scope="col">File</th>
              </tr>
            </thead>
            <tbody>
              {rows.map(({ name, partition }) => (
                <tr key={partition.file}>
                  <th scope="row">{name}</th>
                  <td class="num-left">
                    {spanText(preferredZone.value, partition.start, partition.end, storage.now)}
                  </td>
                  <td>
                    <span class="state-cell">
                      <span class={`swatch block-${partition.state}`} aria-hidden="true">
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
            </tbody>
          </table>
        </ScrollX>
      )}
    </details>
  );
}
