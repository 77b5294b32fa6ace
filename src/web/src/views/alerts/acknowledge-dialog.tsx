/** A dialog that acknowledges an alert, and a button that withdraws the acknowledgement. */
import { useSignal } from "@preact/signals";
import { api, now } from "../../api/client";
import type { Alert } from "../../api/types";
import { author } from "../../app/author";
import { fieldValue, instantOfValue } from "../../model/field-time";
import { zoneName } from "../../model/zone";
import { useAttempt } from "../../parts/attempt";
import { FormDialog, TextField } from "../../parts/dialog";
import { AuthorField } from "./author-field";
import { zoneShown } from "../../app/moment";

interface Props {
  /** An alert, or the labels of several alerts. */
  alert: Pick<Alert, "labels" | "acknowledged">;
  onClose: () => void;
  onDone: () => void;
}

function isPast(end: number | undefined): boolean {
  return end !== undefined && end <= now();
}

const COMMENT_MAX = 1000;

export function AcknowledgeDialog({ alert, onClose, onDone }: Props) {
  const { labels, acknowledged } = alert;
  const comment = useSignal(acknowledged?.comment ?? "");
  const zone = zoneShown();
  const until = useSignal(acknowledged?.until ? fieldValue(zone, acknowledged.until) : "");
  const { busy, error, run } = useAttempt();
  const end = instantOfValue(zone, until.value);
  const runAndClose = (change: () => Promise<unknown>) =>
    void run(async () => {
      await change();
      onDone();
      onClose();
    });
  return (
    <FormDialog
      title={`Acknowledge ${labels["alertname"] ?? "the alert"}`}
      action="Acknowledge"
      isReady={!busy.value && author.value.trim() !== "" && !isPast(end)}
      error={isPast(end) ? "This time is in the past." : error.value}
      onSubmit={() =>
        runAndClose(() => api.acknowledge(labels, author.value.trim(), comment.value.trim(), end))
      }
      onClose={onClose}
      below={
        acknowledged && (
          <button
            type="button"
            class="button"
            disabled={busy.value}
            onClick={() => runAndClose(() => api.withdrawAcknowledgement(labels))}
          >
            Withdraw acknowledgement
          </button>
        )
      }
    >
      <AuthorField label="Name" isFirst />
      <TextField
        label="Comment"
        maxLength={COMMENT_MAX}
        value={comment.value}
        onText={(text) => (comment.value = text)}
      />
      <label class="labelled">
        <span>
          Until <small>({zoneName(zone, now())})</small>
        </span>
        <input
          type="datetime-local"
          value={until.value}
          onInput={(event) => (until.value = event.currentTarget.value)}
        />
        <small>
          Notifications resume at this time if the alert still fires. Without a time, the alert
          stays acknowledged until it ends.
        </small>
      </label>
    </FormDialog>
  );
}
