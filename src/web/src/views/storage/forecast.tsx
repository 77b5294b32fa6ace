/** The forecast of disk space: the next turn of each granularity, with the bytes that it writes. */
import type { StorageAnswer } from "../../api/types";
import { preferredZone } from "../../app/preferences";
import { bytesText, inText } from "../../model/words";
import { Callout } from "../../parts/callout";
import { Table, numberColumns } from "../../parts/table";
import { whenText } from "./times";

const COLUMNS = [
  "Granularity",
  "Written after",
  ...numberColumns("Due", "Bytes", "Reserved", "Missing"),
];

export function Forecast({ storage }: { storage: StorageAnswer }) {
  const { forecast, now } = storage;
  if (forecast.length === 0) return null;
  return (
    <section class="card section">
      <div class="card-head">
        <h2>Next documents</h2>
        <span class="muted">disk space for the documents of the current periods</span>
      </div>
      <Table label="Next documents" columns={COLUMNS}>
        {forecast.map(({ granularity, at, bytes, reserved, missing }) => (
          <tr key={granularity}>
            <th scope="row">{granularity}</th>
            <td class="num-left">{whenText(preferredZone.value, at, now)}</td>
            <td class="num">{inText(at - now)}</td>
            <td class="num">{bytesText(bytes)}</td>
            <td class="num">{bytesText(reserved)}</td>
            <td class="num">{missing > 0 ? bytesText(missing) : "none"}</td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

/** Warns when the disk lacks space for the next documents of any granularity. */
export function MissingSpace({ storage }: { storage: StorageAnswer }) {
  const first = storage.forecast.find(({ missing }) => missing > 0);
  if (!first) return null;
  return (
    <Callout tone="bad" label="Missing disk space" title="Disk space is missing">
      <p>
        The {first.granularity} documents that are written after{" "}
        {whenText(preferredZone.value, first.at, storage.now)} need {bytesText(first.bytes)}, and
        the disk lacks {bytesText(first.missing)}. Free space by then.
      </p>
    </Callout>
  );
}
