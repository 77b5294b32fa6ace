/** Silences and maintenance windows: those that are in force or to come, and those that are over. */
import { useSignal } from "@preact/signals";
import type { ApiError } from "../../api/client";
import { api } from "../../api/client";
import type { Recurrence, Silence, SilenceMatcher } from "../../api/types";
import { useAttempt } from "../../parts/attempt";
import { FormDialog } from "../../parts/dialog";
import { Icon } from "../../parts/icon";
import { Empty, Failed, Loading } from "../../parts/states";
import { momentText } from "./moment";
import { SilenceDialog } from "./silence-dialog";

interface Props {
  silences: readonly Silence[] | undefined;
  error: ApiError | undefined;
  onChange: () => void;
}

const STATES = { active: "In force", pending: "To come", expired: "Over" } as const;
const DOTS = { active: "up", pending: "late", expired: "" } as const;
const ORDER = ["active", "pending", "expired"];

type Doing = { what: "new" } | { what: "change" | "end"; silence: Silence };

export function Silences({ silences, error, onChange }: Props) {
  const doing = useSignal<Doing | undefined>(undefined);
  const isOldShown = useSignal(false);
  const close = () => (doing.value = undefined);
  const sorted = [...(silences ?? [])].sort(
    (a, b) =>
      ORDER.indexOf(a.status.state) - ORDER.indexOf(b.status.state) ||
      Date.parse(a.endsAt) - Date.parse(b.endsAt),
  );
  const shown = sorted.filter(({ status }) => isOldShown.value || status.state !== "expired");
  return (
    <section class="card section">
      <div class="card-head">
        <h2>Silences and maintenance windows</h2>
        <label class="checked muted">
          <input
            type="checkbox"
            checked={isOldShown.value}
            onInput={(event) => (isOldShown.value = event.currentTarget.checked)}
          />
          Those that are over, too
        </label>
        <button type="button" class="button small" onClick={() => (doing.value = { what: "new" })}>
          <Icon name="plus" /> New silence
        </button>
      </div>
      {!silences ? (
        error ? (
          <Failed message={`Silences cannot be shown: ${error.message}`} onRetry={onChange} />
        ) : (
          <Loading what="silences" />
        )
      ) : shown.length === 0 ? (
        <Empty title="Nothing is silenced">
          <p>A silence keeps alerts with certain labels from being told, once or each week.</p>
        </Empty>
      ) : (
        <ul class="alert-rows">
          {shown.map((silence) => (
            <Row
              key={silence.id}
              silence={silence}
              onDo={(what) => (doing.value = { what, silence })}
            />
          ))}
        </ul>
      )}
      {doing.value?.what === "new" && <SilenceDialog onClose={close} onDone={onChange} />}
      {doing.value?.what === "change" && (
        <SilenceDialog silence={doing.value.silence} onClose={close} onDone={onChange} />
      )}
      {doing.value?.what === "end" && (
        <EndDialog silence={doing.value.silence} onClose={close} onDone={onChange} />
      )}
    </section>
  );
}

interface RowProps {
  silence: Silence;
  onDo: (what: "change" | "end") => void;
}

function Row({ silence, onDo }: RowProps) {
  const { state } = silence.status;
  const isOver = state === "expired";
  return (
    <li class={isOver ? "alert-row is-silenced" : "alert-row"}>
      <div class="alert-state">
        <span class="badge">
          {DOTS[state] && <span class={`dot ${DOTS[state]}`} aria-hidden="true" />}
          {STATES[state]}
        </span>
        {silence.recurring && <span class="badge">Recurring</span>}
      </div>
      <div class="alert-what">
        <ul class="labels" aria-label="Which alerts">
          {silence.matchers.map((matcher) => (
            <li key={matcherText(matcher)} class="badge mono">
              {matcherText(matcher)}
            </li>
          ))}
        </ul>
        <p>{silence.comment}</p>
        <p class="muted">by {silence.createdBy}</p>
      </div>
      <dl class="alert-facts num">
        <div>
          <dt>{silence.recurring ? "Window" : "From"}</dt>
          <dd>{momentText(Date.parse(silence.startsAt))}</dd>
        </div>
        <div>
          <dt>{isOver ? "Ended" : "Until"}</dt>
          <dd>{momentText(Date.parse(silence.endsAt))}</dd>
        </div>
        {silence.recurring && (
          <div>
            <dt>Again</dt>
            <dd>{recurrenceText(silence.recurring)}</dd>
          </div>
        )}
      </dl>
      <div class="alert-actions">
        <button type="button" class="button small" onClick={() => onDo("change")}>
          <Icon name={isOver ? "copy" : "pencil"} /> {isOver ? "Make again" : "Change"}
        </button>
        {!isOver && (
          <button type="button" class="button small" onClick={() => onDo("end")}>
            <Icon name="close" /> End
          </button>
        )}
      </div>
    </li>
  );
}

export function matcherText({ name, value, isRegex, isEqual }: SilenceMatcher): string {
  const operator = isRegex ? (isEqual ? "=~" : "!~") : isEqual ? "=" : "!=";
  return `${name}${operator}${JSON.stringify(value)}`;
}

function recurrenceText({ weekdays, from, until, zone }: Recurrence): string {
  const days =
    weekdays.length === 7 || weekdays.length === 0
      ? "each day"
      : weekdays.map((day) => day.slice(0, 1).toUpperCase() + day.slice(1, 3)).join(", ");
  return `${days} ${from}–${until} ${zone}`;
}

interface EndProps {
  silence: Silence;
  onClose: () => void;
  onDone: () => void;
}

function EndDialog({ silence, onClose, onDone }: EndProps) {
  const { busy, error, run } = useAttempt();
  return (
    <FormDialog
      title="End the silence"
      action="End it"
      isReady={!busy.value}
      error={error.value}
      onClose={onClose}
      onSubmit={() =>
        void run(async () => {
          await api.expireSilence(silence.id);
          onDone();
          onClose();
        })
      }
    >
      <p>
        Alerts with <code>{silence.matchers.map(matcherText).join(", ")}</code> are told again from
        now on.
      </p>
    </FormDialog>
  );
}
