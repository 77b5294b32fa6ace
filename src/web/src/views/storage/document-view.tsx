/** One document: the location of its cells, its nested form, and its bytes. */
import { useMemo } from "preact/hooks";
import { setParams } from "../../app/address";
import { preferredZone } from "../../app/preferences";
import { now } from "../../api/client";
import type { StoredCell, StoredDocumentAnswer } from "../../api/types";
import { Icon } from "../../parts/icon";
import { Table, numberColumns } from "../../parts/table";
import { bytesText, countWithNoun, inText } from "../../model/words";
import { HexView } from "./hex-view";
import { bytesOfHex } from "./hex-layout";
import { spanText, whenText } from "./times";
import { TreeView } from "./tree-view";
import { numberText } from "./tree-model";

type State = StoredDocumentAnswer["state"];

const SENTENCES: Record<State, { word: string; means: string }> = {
  none: {
    word: "None",
    means:
      "This time has no cell in memory or in the head, and no document. No sample arrived, or retention has dropped it.",
  },
  shell: {
    word: "Shell",
    means:
      "The document is preallocated and has no sample: each cell is empty, and Granary stores one bit and computes the bytes.",
  },
  memory: {
    word: "In memory",
    means:
      "The newest cells are in memory and durable in the journal. The next checkpoint moves them to the head.",
  },
  head: {
    word: "In the head",
    means:
      "The cells are in the head until the period ends. The checkpoint after it writes the document.",
  },
  open: {
    word: "In its document",
    means: "The cells are in the document. Late samples are patched into its bytes.",
  },
  sealed: {
    word: "Sealed",
    means:
      "The cells are in the document, compressed. Late samples are merged when it is read, and folded in later.",
  },
};

export function DocumentView({
  answer,
  isLoading,
}: {
  answer: StoredDocumentAnswer;
  isLoading: boolean;
}) {
  const { document } = answer;
  const bytes = useMemo(() => bytesOfHex(document?.bytes_hex ?? ""), [document?.bytes_hex]);
  return (
    <div class="stored" aria-busy={isLoading}>
      <CellLocation answer={answer} length={bytes.length} />
      <CellTable title="Cells in memory" cells={answer.memory} />
      <CellTable title="Cells in the head" cells={answer.head} />
      {document && (
        <div class="panes">
          <TreeView document={document} />
          <HexView document={document} bytes={bytes} />
        </div>
      )}
    </div>
  );
}

function CellLocation({ answer, length }: { answer: StoredDocumentAnswer; length: number }) {
  const { series, state, partition, document } = answer;
  const zone = preferredZone.value;
  const full = document?.slots.filter(({ n }) => n > 0).length ?? 0;
  const steps = [
    { name: "Memory", count: answer.memory.length, isHere: state === "memory" },
    { name: "Head", count: answer.head.length, isHere: state === "head" },
    {
      name: "Document",
      count: full,
      isHere: state === "open" || state === "sealed" || state === "shell",
    },
  ];
  return (
    <>
      <div class="where">
        <div class="where-text">
          <h3 class="mono">
            {series.metric}
            <span class="muted">{tagText(series.tags)}</span>
          </h3>
          <p>
            <strong>{SENTENCES[state].word}.</strong> {SENTENCES[state].means}
          </p>
        </div>
        <ol class="steps" aria-label="Location of the cells">
          {steps.map(({ name, count, isHere }) => (
            <li key={name} class={isHere ? "step here" : "step"} aria-current={isHere || undefined}>
              <strong>{name}</strong>
              <span class="num">{countWithNoun(count, "cell")}</span>
            </li>
          ))}
        </ol>
      </div>
      <dl class="facts num">
        <Fact name="Series">{`${series.kind}${series.unit ? ` in ${series.unit}` : ""}`}</Fact>
        {document && (
          <Fact name="Document">
            <Neighbour to={document.start - 1} label="Previous document" icon="left" />
            {spanText(zone, document.start, document.end, now())}
            <Neighbour to={document.end} label="Next document" icon="right" />
          </Fact>
        )}
        {document && (
          <Fact name="Length">{`${length.toLocaleString("en")} bytes, ${countWithNoun(document.slots.length, "slot")}, ${full} with samples`}</Fact>
        )}
        {partition && (
          <Fact name="Partition">{`${spanText(zone, partition.start, partition.end, now())}, ${bytesText(partition.bytes)}, dropped ${inText(partition.dropped_at - now())}`}</Fact>
        )}
        {partition && (
          <Fact name="File">
            <code>{partition.file}</code>
          </Fact>
        )}
      </dl>
    </>
  );
}

function tagText(tags: Record<string, string>): string {
  const pairs = Object.entries(tags).map(([name, value]) => `${name}=${value}`);
  return `{${pairs.join(", ")}}`;
}

function Fact({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Neighbour({ to, label, icon }: { to: number; label: string; icon: "left" | "right" }) {
  return (
    <button
      type="button"
      class="button quiet icon-only small"
      aria-label={label}
      title={label}
      onClick={() => setParams({ time: String(to) }, { replace: true })}
    >
      <Icon name={icon} />
    </button>
  );
}

const COLUMNS = ["n", "sum", "min", "max", "first", "last"] as const;
/** The maximum number of rows; a month of hourly slots would be too many. */
const CELLS_MAX = 12;

function CellTable({ title, cells }: { title: string; cells: StoredCell[] }) {
  if (cells.length === 0) return null;
  const shown = cells.slice(-CELLS_MAX);
  return (
    <div class="cell-table">
      <h3>
        {title}
        {shown.length < cells.length && (
          <span class="muted num">
            {" "}
            the last {shown.length} of {cells.length}
          </span>
        )}
      </h3>
      <Table label={title} columns={["Slot", ...numberColumns(...COLUMNS)]}>
        {shown.map((cell) => (
          <tr key={cell.start}>
            <th scope="row" class="num-left">
              {whenText(preferredZone.value, cell.start, now())}
            </th>
            {COLUMNS.map((name) => (
              <td key={name} class="num">
                {cell[name] === null ? "–" : numberText(cell[name])}
              </td>
            ))}
          </tr>
        ))}
      </Table>
    </div>
  );
}
