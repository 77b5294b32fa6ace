/** Annotations of a time or a time range, such as a deployment: added and deleted here. */
import { useSignal } from "@preact/signals";
import { api, now } from "../api/client";
import type { Annotation } from "../api/types";
import type { TimeFrame } from "../chart/frame";
import { fieldValue, instantOfValue } from "../model/field-time";
import { clockAt, dateText, timeText, zoneName } from "../model/zone";
import { selectionOf } from "../queries/tags";
import { useAttempt } from "./attempt";
import { FormDialog, ErrorLine, TextField } from "./dialog";
import { Icon } from "./icon";

interface Props {
  /** The frame of the charts that draw the annotations. */
  frame: TimeFrame;
  /** Initial tags, as `name=value,name=value`. */
  tags?: string;
}

export function AnnotateButton({ frame, tags = "" }: Props) {
  const isOpen = useSignal(false);
  return (
    <>
      <button type="button" class="button" onClick={() => (isOpen.value = true)}>
        <Icon name="flag" /> Annotate
      </button>
      {isOpen.value ? (
        <AnnotateDialog frame={frame} tags={tags} onClose={() => (isOpen.value = false)} />
      ) : null}
    </>
  );
}

/** The daemon's limit for a text. */
const TEXT_MAX = 1000;

function AnnotateDialog({ frame, tags, onClose }: Required<Props> & { onClose: () => void }) {
  const { zone, fixed } = frame.choice.peek();
  const window = frame.window.peek();
  const text = useSignal("");
  const isSpan = useSignal(fixed !== undefined);
  const start = useSignal(fieldValue(zone, fixed ? window.start : now()));
  const end = useSignal(fieldValue(zone, fixed ? window.end : now()));
  const tagText = useSignal(tags);
  const { busy, error, run } = useAttempt();

  const save = () => {
    const from = instantOfValue(zone, start.value);
    const to = isSpan.value ? instantOfValue(zone, end.value) : undefined;
    error.value = faultOf(text.value, from, isSpan.value ? (to ?? null) : undefined);
    if (error.value !== undefined || from === undefined) return;
    void run(async () => {
      await api.annotate({
        time: from,
        ...(to === undefined ? {} : { end: to }),
        text: text.value.trim(),
        tags: Object.fromEntries(selectionOf(tagText.value)),
      });
      frame.refresh();
      onClose();
    });
  };

  return (
    <FormDialog
      title="Annotate"
      action="Annotate"
      isReady={!busy.value}
      error={error.value}
      onSubmit={save}
      onClose={onClose}
      below={<AnnotationList frame={frame} zone={zone} />}
    >
      <label class="labelled">
        Description
        <textarea
          rows={2}
          autofocus
          maxLength={TEXT_MAX}
          placeholder="Deployed 2.4.1"
          value={text.value}
          onInput={(event) => (text.value = event.currentTarget.value)}
        />
      </label>
      <div class="choices annotate-when" role="group" aria-label="When">
        <button type="button" aria-pressed={!isSpan.value} onClick={() => (isSpan.value = false)}>
          Point in time
        </button>
        <button type="button" aria-pressed={isSpan.value} onClick={() => (isSpan.value = true)}>
          Time range
        </button>
      </div>
      <div class="side-by-side">
        <TimeField label={isSpan.value ? "From" : "Time"} zone={zone} value={start} />
        {isSpan.value ? <TimeField label="To" zone={zone} value={end} /> : null}
      </div>
      <TextField
        label="Tags"
        placeholder="host=web1, service=shop"
        value={tagText.value}
        onText={(text) => (tagText.value = text)}
      />
    </FormDialog>
  );
}

/** `to` is `null` for a range whose end is missing. */
function faultOf(text: string, from: number | undefined, to: number | null | undefined) {
  if (text.trim() === "") return "Enter a description.";
  if (from === undefined || to === null) return "Enter a time.";
  return to !== undefined && to <= from ? "The end is before the start." : undefined;
}

interface TimeFieldProps {
  label: string;
  zone: string;
  value: { value: string };
}

function TimeField({ label, zone, value }: TimeFieldProps) {
  return (
    <label class="labelled">
      <span>
        {label} <small>({zoneName(zone, instantOfValue(zone, value.value) ?? now())})</small>
      </span>
      <input
        type="datetime-local"
        value={value.value}
        onInput={(event) => (value.value = event.currentTarget.value)}
      />
    </label>
  );
}

/** The maximum number of listed annotations, the newest first. */
const LISTED_MAX = 20;

/** The annotations in the visible range. */
function AnnotationList({ frame, zone }: { frame: TimeFrame; zone: string }) {
  const { error, run } = useAttempt();
  const deleted = useSignal<string[]>([]);
  const visible = frame.annotations.value.filter(
    ({ source, id }) => source === "user" && !deleted.value.includes(id),
  );
  if (visible.length === 0) return null;
  const remove = (id: string) =>
    run(async () => {
      await api.deleteAnnotation(id);
      deleted.value = [...deleted.value, id];
      frame.refresh();
    });
  return (
    <section class="noted">
      <h3>In the visible range</h3>
      <ul>
        {visible.slice(-LISTED_MAX).map((annotation) => (
          <li key={annotation.id}>
            <span class="noted-text">
              {annotation.text}
              <small class="muted">{timeSpanText(annotation, zone)}</small>
            </span>
            <button
              type="button"
              class="button quiet icon-only"
              aria-label={`Delete “${annotation.text}”`}
              title="Delete"
              onClick={() => void remove(annotation.id)}
            >
              <Icon name="trash" />
            </button>
          </li>
        ))}
      </ul>
      <ErrorLine message={error.value} />
    </section>
  );
}

function timeSpanText({ time, end, tags }: Annotation, zone: string): string {
  const at = (instant: number) => {
    const clock = clockAt(zone, instant);
    return `${dateText(clock)} ${timeText(clock)}`;
  };
  const pairs = Object.entries(tags).map(([name, value]) => `${name}=${value}`);
  const when = end === null ? at(time) : `${at(time)} to ${at(end)}`;
  return [when, ...pairs].join(" · ");
}
