/** The last checkpoints: the cells that they moved from memory to the head and to documents. */
import type { Checkpoint, StorageAnswer } from "../../api/types";
import { preferredZone } from "../../app/preferences";
import { bytesText, countText, elapsedText } from "../../model/words";
import { Ago } from "../../parts/ago";
import { Table, numberColumns } from "../../parts/table";
import { Meter } from "../status/meter";
import { shareOf } from "../status/shares";
import { whenText } from "./times";

interface Column {
  name: string;
  of: (checkpoint: Checkpoint) => number;
  text: (value: number) => string;
}

const COLUMNS: Column[] = [
  {
    name: "Duration",
    of: ({ elapsed_ms }) => elapsed_ms,
    text: elapsedText,
  },
  { name: "Cells", of: ({ cells }) => cells, text: countText },
  { name: "Documents", of: ({ documents }) => documents, text: countText },
  { name: "Bytes written", of: ({ bytes_written }) => bytes_written, text: bytesText },
];

export function Checkpoints({ storage }: { storage: StorageAnswer }) {
  const { checkpoints, now } = storage;
  return (
    <section class="card section">
      <div class="card-head">
        <h2>Checkpoints</h2>
        <span class="muted">cells moved from memory to the head and to documents</span>
      </div>
      {checkpoints.length === 0 ? (
        <p class="nothing">
          No checkpoint since the daemon started. Accepted samples are durable in the journal.
        </p>
      ) : (
        <Table
          label="Checkpoints"
          class="checkpoints"
          columns={["When", ...numberColumns(...COLUMNS.map(({ name }) => name))]}
        >
          {checkpoints.map((checkpoint) => (
            <tr key={checkpoint.at}>
              <th scope="row" class="num-left">
                {whenText(preferredZone.value, checkpoint.at, now)}{" "}
                <span class="muted">
                  <Ago at={checkpoint.at} />
                </span>
              </th>
              {COLUMNS.map((column) => (
                <Bar key={column.name} column={column} checkpoint={checkpoint} all={checkpoints} />
              ))}
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}

function Bar({
  column,
  checkpoint,
  all,
}: {
  column: Column;
  checkpoint: Checkpoint;
  all: Checkpoint[];
}) {
  const value = column.of(checkpoint);
  const most = Math.max(...all.map((checkpoint) => column.of(checkpoint)));
  return (
    <td class="num bytes-cell">
      {column.text(value)}
      <Meter share={shareOf(value, most)} plain />
    </td>
  );
}
