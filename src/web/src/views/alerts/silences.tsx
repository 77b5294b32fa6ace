/** Active, pending and expired silences and maintenance windows. */
import { useSignal } from "@preact/signals";
import type { ApiError } from "../../api/client";
import { api } from "../../api/client";
import type { Recurrence, Silence, SilenceMatcher } from "../../api/types";
import { useAttempt } from "../../parts/attempt";
import { FormDialog } from "../../parts/dialog";
import { Icon } from "../../parts/icon";
import { Empty, Failed, Loading } from "../../parts/states";
import { momentText } from "../../app/moment";
import { SilenceDialog } from "./silence-dialog";

interface Props {
  silences: readonly Silence[] | undefined;
  error: ApiError | undefined;
  onChange: () => void;
}

const STATES = { active: "Active", pending: "Pending", expired: "Expired" } as const;
const DOTS = { active: "up", pending: "late", expired: "" } as const;
const ORDER = ["active", "pending", "expired"];

type OpenDialog = { what: "new" } | { what: "change" | "end"; silence: Silence };

export function Silences({ silences, error, onChange }: Props) {
  const openDialog = useSignal<OpenDialog | undefined>(undefined);
  const isOldShown = useSignal(false);
  const close = () => (openDialog.value = undefined);
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
          Show expired
        </label>
        <button
          type="button"
          class="button small"
          onClick={() => (openDialog.value = { what: "new" })}
        >
          <Icon name="plus" /> New silence
        </button>
      </div>
      {!silences ? (
        error ? (
          <Failed message={`Cannot load the silences: ${error.message}`} onRetry={onChange} />
        ) : (
          <Loading what="silences" />
        )
      ) : shown.length === 0 ? (
        <Empty title="No silences">
          <p>A silence suppresses notifications of alerts with certain labels, once or weekly.</p>
        </Empty>
      ) : (
        <ul class="alert-rows">
          {shown.map((silence) => (
            <Row
              key={silence.id}
              silence={silence}
              onDo={(what) => (openDialog.value = { what, silence })}
            />
          ))}
        </ul>
      )}
      {openDialog.value?.what === "new" && <SilenceDialog onClose={close} onDone={onChange} />}
      {openDialog.value?.what === "change" && (
        <SilenceDialog silence={openDialog.value.silence} onClose={close} onDone={onChange} />
      )}
      {openDialog.value?.what === "end" && (
        <EndDialog silence={openDialog.value.silence} onClose={close} onDone={onChange} />
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
          <dt>{isOver ? "Expired" : "Until"}</dt>
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
          <Icon name={isOver ? "copy" : "pencil"} /> {isOver ? "Recreate" : "Edit"}
        </button>
        {!isOver && (
          <button type="button" class="button small" onClick={() => onDo("end")}>
            <Icon name="close" /> Expire
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
      ? "daily"
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
      title="Expire silence"
      action="Expire"
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
        Alerts with <code>{silence.matchers.map(matcherText).join(", ")}</code> notify again from
        now on.
      </p>
    </FormDialog>
  );
}
