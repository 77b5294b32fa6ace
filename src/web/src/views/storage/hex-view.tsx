/** The bytes of a document: each number of a cell has a border and the colour of its column. */
import { useMemo, useRef } from "preact/hooks";
import { preferredZone } from "../../app/preferences";
import { now } from "../../api/client";
import { narrow } from "../../parts/narrow";
import {
  columnsOf,
  hexRows,
  hexText,
  letters,
  partsOf,
  type HexRow,
  type Run,
  type StoredDocument,
} from "./hex-layout";
import { mark, point, useMarks } from "./marks";
import { numberText } from "./tree-model";
import { whenText } from "./times";

interface Props {
  document: StoredDocument;
  bytes: Uint8Array;
}

export function HexView({ document, bytes }: Props) {
  const perRow = narrow.value ? 8 : 16;
  const box = useRef<HTMLDivElement>(null);
  const onPoint = useMarks(box);
  const rows = useMemo(
    () => hexRows(bytes.length, partsOf(document), perRow),
    [document, bytes, perRow],
  );
  // Rows are drawn once for each document: marks only change classes.
  const drawn = useMemo(
    () => rows.map((row) => <Row key={row.offset} row={row} bytes={bytes} />),
    [rows, bytes],
  );
  return (
    <section class="pane" aria-label="The document's bytes">
      <div class="pane-head">
        <h3>Bytes</h3>
        <ul class="column-legend" aria-label="Columns">
          {columnsOf(document.slots).map((name, place) => (
            <li key={name} class={`run column-${place % 8}`}>
              {name}
            </li>
          ))}
        </ul>
      </div>
      <div
        ref={box}
        class="pane-body hex mono"
        role="region"
        aria-label="Bytes in hexadecimal"
        tabIndex={0}
        onPointerOver={onPoint}
        onPointerLeave={() => point(undefined)}
      >
        {drawn}
      </div>
      <PointedBytes document={document} />
    </section>
  );
}

function Row({ row, bytes }: { row: HexRow; bytes: Uint8Array }) {
  const end = row.runs.at(-1)?.to ?? row.offset;
  return (
    <div class="hex-row">
      <span class="hex-offset">{row.offset.toString(16).padStart(4, "0")}</span>
      <span class="hex-bytes">
        {row.runs.map((run) => (
          <Bytes key={run.from} run={run} bytes={bytes} />
        ))}
      </span>
      <span class="hex-letters" aria-hidden="true">
        {letters(bytes, row.offset, end)}
      </span>
    </div>
  );
}

/** The columns of a cell in stored order: each has a colour. */
const PLACES = ["n", "first_at", "last_at", "sum", "min", "max", "first", "last"];

function Bytes({ run, bytes }: { run: Run; bytes: Uint8Array }) {
  const { part } = run;
  const text = hexText(bytes, run.from, run.to);
  if (!part) return <span class="run plain">{text}</span>;
  const colour = part.slot < 0 ? "of-header" : `column-${PLACES.indexOf(part.name) % 8}`;
  const begins = run.from === part.offset ? " begins" : "";
  const ends = run.to === part.offset + part.length ? " ends" : "";
  return (
    <span
      class={`run ${colour}${begins}${ends}${part.isEmpty ? " empty-cell" : ""}`}
      data-slot={part.slot}
      data-column={part.name}
    >
      {text}
    </span>
  );
}

/** The meaning of the pointed bytes. */
function PointedBytes({ document }: { document: StoredDocument }) {
  const to = mark.value;
  return (
    <p class="pointed num" role="status">
      {to ? (
        <PointedText document={document} slot={to.slot} column={to.column} />
      ) : (
        "Point at a cell or at bytes to highlight both."
      )}
    </p>
  );
}

interface PointedTextProps {
  document: StoredDocument;
  slot: number;
  column: string;
}

function PointedText({ document, slot, column }: PointedTextProps) {
  const cell = document.slots[slot];
  const parts = cell ? cell.columns : (document.header ?? []);
  const part = parts.find(({ name }) => name === column);
  const which = cell
    ? `slot ${slot}, ${whenText(preferredZone.value, cell.start, now())}`
    : "of the header";
  if (!part) {
    const length = parts.reduce((total, { length }) => total + length, 0);
    return (
      <>
        <strong>{which}</strong>
        <span>
          {length} bytes in {parts.length} columns
        </span>
        {cell?.n === 0 && <span>empty</span>}
      </>
    );
  }
  const last = part.offset + part.length - 1;
  return (
    <>
      <strong>{part.name}</strong>
      <span>{which}</span>
      <span>
        bytes {part.offset} to {last}
      </span>
      <span>{part.length} long</span>
      {cell?.n === 0 ? (
        <span>empty</span>
      ) : (
        <span>
          {part.name === "checksum" ? "XXH3 of all bytes before" : `= ${numberText(part.value)}`}
        </span>
      )}
    </>
  );
}
