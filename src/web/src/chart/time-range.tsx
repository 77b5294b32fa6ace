/** The shown range of time, and a box in which any other range can be typed. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { api, now } from "../api/client";
import { useResource } from "../api/resource";
import { MOMENT_EXAMPLE, momentFieldText, parseMoment } from "../model/moment";
import { parseRange, rangeLabel, rangesWithin, type Range } from "../model/range";
import { rangeLengthMax, rangesOf, slotOf, withRange, type Choice } from "../model/timeframe";
import { Popover } from "../parts/popover";
import type { TimeFrame } from "./frame";
import { shortRangeText, timeRangeText } from "./save";

export function TimeRange({ frame }: { frame: TimeFrame }) {
  const window = frame.window.value;
  return (
    <div class="time-range num" title={timeRangeText(window)}>
      <Popover label="Time range" text={shortRangeText(window, now())} isLabelHidden>
        {(close) => <Form frame={frame} close={close} />}
      </Popover>
    </div>
  );
}

function Form({ frame, close }: { frame: TimeFrame; close: () => void }) {
  const choice = frame.choice.value;
  const choose = (range: Range) => {
    frame.set(withRange(choice, range));
    close();
  };
  return (
    <div class="range-form">
      <LongRanges choice={choice} onChoose={choose} />
      <LastForm range={choice.range} onChoose={choose} />
      <FromForm
        frame={frame}
        onChoose={(start, end) => {
          frame.show(start, end);
          close();
        }}
      />
    </div>
  );
}

interface LongRangesProps {
  choice: Choice;
  onChoose: (range: Range) => void;
}

/** The longer ranges for which the daemon keeps the slots. */
function LongRanges({ choice, onChoose }: LongRangesProps) {
  const { resolution } = choice;
  const storage = useResource("retention", (signal) => api.storage(signal)).value;
  const slot = slotOf(resolution);
  const kept = storage.data?.granularities.find(({ slot_ms }) => slot_ms === slot)?.retention;
  const retention = parseRange(kept ?? "");
  const longest = rangesOf(resolution).at(-1);
  if (retention === undefined || longest === undefined) return null;
  const ranges = rangesWithin(retention, longest, rangeLengthMax(resolution));
  return (
    <>
      <p class="muted">
        Slots of {rangeLabel(resolution)} are kept {rangeLabel(retention)}.
      </p>
      {ranges.length > 0 && (
        <div class="choices" role="group" aria-label="Longer ranges">
          {ranges.map((range) => (
            <button
              key={range}
              type="button"
              aria-pressed={!choice.fixed && choice.range === range}
              onClick={() => onChoose(range)}
            >
              {rangeLabel(range)}
            </button>
          ))}
        </div>
      )}
    </>
  );
}

interface FieldsProps {
  action: string;
  /** Applies the fields; returns an error that names what to type instead. */
  submit: () => string | undefined;
  children: ComponentChildren;
}

/** Fields with a button and the error of the last attempt. */
function Fields({ action, submit, children }: FieldsProps) {
  const error = useSignal<string | undefined>(undefined);
  return (
    <form
      class="range-fields"
      onSubmit={(event) => {
        event.preventDefault();
        error.value = submit();
      }}
    >
      {children}
      <button type="submit" class="button">
        {action}
      </button>
      {error.value && (
        <p class="bad" role="alert">
          {error.value}
        </p>
      )}
    </form>
  );
}

function LastForm({ range, onChoose }: { range: Range; onChoose: (range: Range) => void }) {
  const text = useSignal<string>(range);
  const submit = () => {
    const typed = parseRange(text.value);
    if (typed === undefined) return "Type a length such as 6h, 14d or 3mo.";
    onChoose(typed);
    return undefined;
  };
  return (
    <Fields action="Show range" submit={submit}>
      <TextField label="Last" text={text} />
    </Fields>
  );
}

interface FromFormProps {
  frame: TimeFrame;
  onChoose: (start: number, end: number) => void;
}

function FromForm({ frame, onChoose }: FromFormProps) {
  const { start, end, zone } = frame.window.peek();
  const from = useSignal(momentFieldText(zone, start));
  const to = useSignal(momentFieldText(zone, end));
  const submit = () => {
    const example = `a time such as ${MOMENT_EXAMPLE}, 14:30 or -6h`;
    const first = parseMoment(from.value, zone, now());
    const last = parseMoment(to.value, zone, now());
    if (first === undefined) return `From: type ${example}.`;
    if (last === undefined) return `To: type ${example}, or now.`;
    if (last <= first) return "To must be later than From.";
    onChoose(first, last);
    return undefined;
  };
  return (
    <Fields action="Show times" submit={submit}>
      <TextField label="From" text={from} />
      <TextField label="To" text={to} />
    </Fields>
  );
}

interface TextFieldProps {
  label: string;
  text: { value: string };
}

function TextField({ label, text }: TextFieldProps) {
  return (
    <label>
      <span class="muted">{label}</span>
      <input
        type="text"
        autocomplete="off"
        spellcheck={false}
        value={text.value}
        onInput={(event) => (text.value = event.currentTarget.value)}
      />
    </label>
  );
}
