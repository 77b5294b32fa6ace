/** A time line of the partitions for each granularity. */
import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Partition, StorageAnswer, StoredGranularity } from "../../api/types";
import { setParams } from "../../app/address";
import { preferredZone } from "../../app/preferences";
import { timeTicks } from "../../model/ticks";
import { bytesText, countText, countWithNoun, inText, lengthText } from "../../model/words";
import { narrow } from "../../parts/narrow";
import {
  STATE_TEXTS,
  blocksOf,
  bytesOf,
  positionOf,
  scaleOf,
  type PartitionState,
  type Scale,
} from "./lane";
import { spanText } from "./times";

const STATES: PartitionState[] = ["sealed", "over", "open", "ahead"];

export function Timeline({ storage }: { storage: StorageAnswer }) {
  const shown = useSignal<string | undefined>(undefined);
  const lanes = storage.granularities;
  const all = lanes.flatMap((lane) => lane.partitions.map((partition) => ({ lane, partition })));
  const pointed =
    all.find(({ partition }) => partition.file === shown.value) ??
    all.find(({ partition }) => partition.state === "open");
  const states = STATES.filter((state) => all.some(({ partition }) => partition.state === state));
  return (
    <div class="timeline">
      <ul class="block-legend" aria-label="Legend" hidden={states.length === 0}>
        {states.map((state) => (
          <li key={state}>
            <span class={`block-swatch block-${state}`} aria-hidden="true">
              <span class="block-fill" />
            </span>
            <strong>{STATE_TEXTS[state].word}</strong> {STATE_TEXTS[state].means}
          </li>
        ))}
        <li>
          <span class="block-swatch filled" aria-hidden="true">
            <span class="block-fill" />
          </span>
          <strong>Filled</strong> bytes relative to the largest in the row
        </li>
      </ul>
      {lanes.map((lane) => (
        <Lane key={lane.name} lane={lane} now={storage.now} shown={shown} />
      ))}
      {pointed && (
        <p class="block-detail num" role="status">
          <Detail name={pointed.lane.name} partition={pointed.partition} now={storage.now} />
        </p>
      )}
    </div>
  );
}

function Detail({ name, partition, now }: { name: string; partition: Partition; now: number }) {
  const { file, start, end, bytes, documents, shells } = partition;
  return (
    <>
      <strong>{name}</strong>
      <span>{spanText(preferredZone.value, start, end, now)}</span>
      <span>{STATE_TEXTS[partition.state].word.toLowerCase()}</span>
      <span>{bytesText(bytes)}</span>
      {documents !== null && <span>{countWithNoun(documents, "document")}</span>}
      {shells !== null && shells > 0 && <span>{countText(shells)} of them shells</span>}
      <span>dropped {inText(partition.dropped_at - now)}</span>
      <code>{file}</code>
      <span class="muted">click: first document</span>
    </>
  );
}

/** Ticks whose label fits between the edges. */
function ticksOf(scale: Scale): { left: number; text: string }[] {
  const edge = narrow.value ? 9 : 3;
  return timeTicks(preferredZone.value, scale.start, scale.end, narrow.value ? 4 : 9)
    .map(({ at, text }) => ({ left: positionOf(scale, at), text: tickText(text) }))
    .filter(({ left }) => left >= edge && left <= 100 - edge);
}

/** Joins the two lines of a tick: the day before the time, the year after the day. */
function tickText(text: string): string {
  const lines = text.split("\n");
  return (text.includes(":") ? lines.reverse() : lines).join(" ");
}

interface LaneProps {
  lane: StoredGranularity;
  now: number;
  /** The pointed file. */
  shown: Signal<string | undefined>;
}

function Lane({ lane, now, shown }: LaneProps) {
  const scale = scaleOf(lane.partitions, now);
  return (
    <div class="lane">
      <div class="lane-name">
        <h3>{lane.name}</h3>
        <span class="muted num">
          {bytesText(bytesOf(lane))}, kept {lane.retention}
        </span>
      </div>
      {scale ? (
        <div class="lane-track">
          <Blocks lane={lane} now={now} shown={shown} />
          <span
            class={positionOf(scale, now) > 90 ? "now-line at-end" : "now-line"}
            style={{ left: `${positionOf(scale, now)}%` }}
            aria-hidden="true"
          >
            <span>now</span>
          </span>
          <div class="lane-ticks" aria-hidden="true">
            {ticksOf(scale).map(({ left, text }) => (
              <span key={left} style={{ left: `${left}%` }}>
                {text}
              </span>
            ))}
          </div>
        </div>
      ) : (
        <p class="muted lane-none">
          No partitions yet. The first is written when a document's period ends.
        </p>
      )}
    </div>
  );
}

function Blocks({ lane, now, shown }: LaneProps) {
  const scale = scaleOf(lane.partitions, now);
  const row = useRef<HTMLDivElement>(null);
  const at = useSignal(-1);
  const blocks = scale ? blocksOf(lane.partitions, scale) : [];
  const open = blocks.findIndex(({ partition }) => partition.state === "open");
  const stop = at.value >= 0 && at.value < blocks.length ? at.value : Math.max(0, open);
  useEffect(() => {
    // Only the arrow keys move the focus.
    const button = row.current?.children[at.value];
    if (row.current?.contains(document.activeElement) && button instanceof HTMLElement)
      button.focus();
  }, [at.value]);
  const onKeyDown = (event: KeyboardEvent) => {
    const to = {
      ArrowRight: stop + 1,
      ArrowLeft: stop - 1,
      Home: 0,
      End: blocks.length - 1,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    at.value = Math.max(0, Math.min(blocks.length - 1, to));
  };
  return (
    <div
      ref={row}
      class="blocks"
      role="group"
      aria-label={`Partitions of ${lane.name}`}
      onKeyDown={onKeyDown}
    >
      {blocks.map(({ partition, left, width, fill }, index) => (
        <button
          key={partition.file}
          type="button"
          class={`block block-${partition.state}`}
          tabIndex={index === stop ? 0 : -1}
          style={{ left: `${left}%`, width: `${width}%` }}
          aria-label={nameOf(lane, partition, now)}
          aria-pressed={shown.value === partition.file}
          onPointerEnter={() => (shown.value = partition.file)}
          onClick={() => setParams(choiceIn(lane, partition), { replace: true })}
          onFocus={() => {
            at.value = index;
            shown.value = partition.file;
          }}
        >
          <span class="block-fill" style={{ height: `${fill}%` }} />
          {(partition.state === "open" || partition.state === "ahead") &&
            width > (narrow.value ? 14 : 5) && <span class="block-word">{partition.state}</span>}
        </button>
      ))}
    </div>
  );
}

/** The first document of a partition, for the series chosen below. */
function choiceIn(lane: StoredGranularity, partition: Partition): Record<string, string> {
  return { resolution: lane.name, time: String(partition.start) };
}

function nameOf(lane: StoredGranularity, partition: Partition, now: number): string {
  const span = spanText(preferredZone.value, partition.start, partition.end, now);
  const state = STATE_TEXTS[partition.state].word.toLowerCase();
  const dropped = lengthText(Math.max(0, partition.dropped_at - now), 1);
  return `${lane.name}, ${span}, ${state}, ${bytesText(partition.bytes)}, dropped in ${dropped}`;
}
