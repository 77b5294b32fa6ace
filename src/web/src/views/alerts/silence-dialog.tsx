/** A silence or a maintenance window: its labels, times, author and comment. */
import { untracked, useSignal, type Signal } from "@preact/signals";
import { api, now } from "../../api/client";
import type { SilenceMatcher } from "../../api/types";
import { author } from "../../app/author";
import { zoneName } from "../../model/zone";
import { useAttempt } from "../../parts/attempt";
import { FormDialog, TextField } from "../../parts/dialog";
import { Icon } from "../../parts/icon";
import { AuthorField } from "./author-field";
import { meetsAll } from "./chosen";
import { Coverage } from "./coverage";
import type { ListedAlert } from "./listed";
import { zoneShown } from "../../app/moment";
import {
  draftOf,
  silenceFault,
  silenceOf,
  WEEKDAYS,
  type SilenceSubject,
  type SilenceDraft,
} from "./silence-draft";

interface Props extends SilenceSubject {
  chosen?: readonly ListedAlert[] | undefined;
  /** All active alerts, to report how many of them the silence covers. */
  active?: readonly ListedAlert[] | undefined;
  onClose: () => void;
  onDone: () => void;
}

const COMMENT_MAX = 1000;

export function SilenceDialog({ labels, silence, chosen, active, onClose, onDone }: Props) {
  const draft = useSignal(draftOf({ labels, silence, chosen }, untracked(zoneShown), now()));
  const { busy, error, run } = useAttempt();
  const change = (changes: Partial<SilenceDraft>) => (draft.value = { ...draft.value, ...changes });
  const { isRecurring, comment } = draft.value;
  const save = () => {
    error.value = silenceFault(draft.value, author.value);
    if (error.value !== undefined) return;
    void run(async () => {
      await api.silence(silenceOf(draft.value, author.value));
      onDone();
      onClose();
    });
  };
  return (
    <FormDialog
      title={draft.value.id === undefined ? "Silence alerts" : "Edit silence"}
      action={draft.value.id === undefined ? "Silence" : "Save"}
      isReady={!busy.value}
      error={error.value}
      onSubmit={save}
      onClose={onClose}
    >
      <Matchers draft={draft} />
      {chosen && <Covered chosen={chosen} active={active ?? []} draft={draft} />}
      <div class="choices annotate-when" role="group" aria-label="Recurrence">
        <button
          type="button"
          aria-pressed={!isRecurring}
          onClick={() => change({ isRecurring: false })}
        >
          Once
        </button>
        <button
          type="button"
          aria-pressed={isRecurring}
          // A recurring window may have no end.
          onClick={() => change({ isRecurring: true, end: "" })}
        >
          Weekly
        </button>
      </div>
      {isRecurring && <Windows draft={draft} />}
      <When draft={draft} />
      <div class="side-by-side">
        <AuthorField label="Author" />
        <TextField
          label="Comment"
          maxLength={COMMENT_MAX}
          placeholder="Replacing the disk"
          value={comment}
          onText={(text) => change({ comment: text })}
        />
      </div>
    </FormDialog>
  );
}

interface PartProps {
  draft: Signal<SilenceDraft>;
}

const OPERATORS = ["=", "!=", "=~", "!~"];

function Matchers({ draft }: PartProps) {
  const { matchers } = draft.value;
  const set = (next: SilenceMatcher[]) => (draft.value = { ...draft.value, matchers: next });
  const change = (at: number, changes: Partial<SilenceMatcher>) =>
    set(matchers.map((matcher, k) => (k === at ? { ...matcher, ...changes } : matcher)));
  return (
    <fieldset class="matchers">
      <legend>Matching labels</legend>
      {matchers.map((matcher, k) => {
        const which = matcher.name || `label ${k + 1}`;
        return (
          // Rows have no keys, and are added only at the end.
          <div key={k} class="matcher">
            <input
              type="text"
              class="mono"
              aria-label={`Name of label ${k + 1}`}
              placeholder="label"
              value={matcher.name}
              onInput={(event) => change(k, { name: event.currentTarget.value })}
            />
            <select
              aria-label={`Operator of ${which}`}
              value={OPERATORS[Number(!matcher.isEqual) + 2 * Number(matcher.isRegex)]}
              onInput={(event) => {
                const operator = event.currentTarget.value;
                change(k, { isEqual: operator.startsWith("="), isRegex: operator.endsWith("~") });
              }}
            >
              {OPERATORS.map((operator) => (
                <option key={operator}>{operator}</option>
              ))}
            </select>
            <input
              type="text"
              class="mono"
              aria-label={`Value of ${which}`}
              placeholder={matcher.isRegex ? "pattern" : "value"}
              value={matcher.value}
              onInput={(event) => change(k, { value: event.currentTarget.value })}
            />
            <button
              type="button"
              class="button quiet icon-only"
              aria-label={`Remove ${which}`}
              title="Remove: silences more alerts"
              disabled={matchers.length === 1}
              onClick={() => set(matchers.filter((_, at) => at !== k))}
            >
              <Icon name="close" />
            </button>
          </div>
        );
      })}
      <button
        type="button"
        class="button small"
        onClick={() => set([...matchers, { name: "", value: "", isRegex: false, isEqual: true }])}
      >
        <Icon name="plus" /> Label
      </button>
    </fieldset>
  );
}

interface CoveredProps extends PartProps {
  chosen: readonly ListedAlert[];
  active: readonly ListedAlert[];
}

function Covered({ chosen, active, draft }: CoveredProps) {
  const { matchers } = draft.value;
  const met = active.map((row) => meetsAll(matchers, row.alert.labels));
  if (met.includes(undefined)) return null;
  return <Coverage chosen={chosen} covered={active.filter((_, k) => met[k])} />;
}

/** The start and end of the silence; for recurring windows, the bounds of all windows. */
function When({ draft }: PartProps) {
  const { start, end, isRecurring } = draft.value;
  const { zone } = draft.value;
  const field = (label: string, value: string, name: "start" | "end") => (
    <label class="labelled">
      <span>
        {label} <small>({zoneName(zone, now())})</small>
      </span>
      <input
        type="datetime-local"
        value={value}
        onInput={(event) => (draft.value = { ...draft.value, [name]: event.currentTarget.value })}
      />
    </label>
  );
  return (
    <div class="side-by-side">
      {field(isRecurring ? "First start" : "From", start, "start")}
      {field(isRecurring ? "Last end" : "Until", end, "end")}
    </div>
  );
}

function Windows({ draft }: PartProps) {
  const { weekdays, from, until, windowZone } = draft.value;
  const change = (changes: Partial<SilenceDraft>) => (draft.value = { ...draft.value, ...changes });
  const time = (label: string, value: string, name: "from" | "until") => (
    <label class="labelled">
      {label}
      <input
        type="time"
        value={value}
        onInput={(event) => change({ [name]: event.currentTarget.value })}
      />
    </label>
  );
  return (
    <>
      <div class="chips" role="group" aria-label="Weekdays">
        {WEEKDAYS.map((day) => {
          const isChosen = weekdays.includes(day);
          const others = weekdays.filter((other) => other !== day);
          return (
            <button
              key={day}
              type="button"
              class="chip"
              aria-pressed={isChosen}
              aria-label={day}
              onClick={() => change({ weekdays: isChosen ? others : [...weekdays, day] })}
            >
              {day.slice(0, 1).toUpperCase() + day.slice(1, 3)}
            </button>
          );
        })}
      </div>
      <div class="side-by-side">
        {time("Start time", from, "from")}
        {time("End time", until, "until")}
        <TextField
          label="Time zone"
          isCode
          value={windowZone}
          onText={(text) => change({ windowZone: text.trim() })}
        />
      </div>
    </>
  );
}
