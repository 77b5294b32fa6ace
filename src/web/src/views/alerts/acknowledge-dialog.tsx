/** A dialog that acknowledges alerts, and a button that withdraws the acknowledgement. */
import { useSignal } from "@preact/signals";
import { api, now } from "../../api/client";
import type { Alert } from "../../api/types";
import { author } from "../../app/author";
import { fieldValue, instantOfValue } from "../../model/field-time";
import { zoneName } from "../../model/zone";
import { causeText, useAttempt } from "../../parts/attempt";
import { FormDialog, TextField } from "../../parts/dialog";
import { AuthorField } from "./author-field";
import { zoneShown } from "../../app/moment";

interface Props {
  /** The alerts; one entry can be the labels of several alerts. */
  alerts: readonly Pick<Alert, "labels" | "acknowledged">[];
  onClose: () => void;
  onDone: () => void;
}

function isPast(end: number | undefined): boolean {
  return end !== undefined && end <= now();
}

const COMMENT_MAX = 1000;

/** Acts on one alert after the other; an error reports how many are done. */
async function forEach<T>(alerts: readonly T[], act: (alert: T) => Promise<unknown>) {
  for (const [done, alert] of alerts.entries()) {
    try {
      await act(alert);
    } catch (cause) {
      if (alerts.length === 1) throw cause;
      throw new Error(`${done} of ${alerts.length} alerts are done. ${causeText(cause)}`);
    }
  }
}

export function AcknowledgeDialog({ alerts, onClose, onDone }: Props) {
  const [{ labels, acknowledged } = { labels: {} }, ...others] = alerts;
  const isOne = others.length === 0;
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
      title={
        isOne
          ? `Acknowledge ${labels["alertname"] ?? "the alert"}`
          : `Acknowledge ${alerts.length.toLocaleString("en")} alerts`
      }
      action="Acknowledge"
      isReady={!busy.value && author.value.trim() !== "" && !isPast(end)}
      error={isPast(end) ? "This time is in the past." : error.value}
      onSubmit={() =>
        runAndClose(() =>
          forEach(alerts, (one) =>
            api.acknowledge(one.labels, author.value.trim(), comment.value.trim(), end),
          ),
        )
      }
      onClose={onClose}
      below={
        alerts.some((one) => one.acknowledged) && (
          <button
            type="button"
            class="button"
            disabled={busy.value}
            onClick={() =>
              runAndClose(() => forEach(alerts, (one) => api.withdrawAcknowledgement(one.labels)))
            }
          >
            Withdraw {isOne ? "acknowledgement" : "acknowledgements"}
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
