/** A dialog that acknowledges alerts, and a button that withdraws the acknowledgement. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
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
  /** The alerts that are covered, if others than the listed ones may be. */
  coverage?: ComponentChildren;
  onClose: () => void;
  onDone: () => void;
}

function isPast(end: number | undefined): boolean {
  return end !== undefined && end <= now();
}

const COMMENT_MAX = 1000;

/** Acts on one alert after the other; an error reports how many are done. */
async function forEach<T>(
  alerts: readonly T[],
  act: (alert: T) => Promise<unknown>,
  onPart: () => void,
) {
  for (const [done, alert] of alerts.entries()) {
    try {
      await act(alert);
    } catch (cause) {
      if (alerts.length === 1) throw cause;
      if (done > 0) onPart();
      throw new Error(`${done} of ${alerts.length} alerts are done. ${causeText(cause)}`);
    }
  }
}

export function AcknowledgeDialog({ alerts, coverage, onClose, onDone }: Props) {
  const [first, ...others] = alerts;
  const isOne = others.length === 0;
  const acknowledged = isOne ? first?.acknowledged : undefined;
  const comment = useSignal(acknowledged?.comment ?? "");
  const zone = zoneShown();
  const until = useSignal(acknowledged?.until ? fieldValue(zone, acknowledged.until) : "");
  const { busy, error, run } = useAttempt();
  const end = instantOfValue(zone, until.value);
  const runAndClose = (act: (alert: Props["alerts"][number]) => Promise<unknown>) =>
    void run(async () => {
      await forEach(alerts, act, onDone);
      onDone();
      onClose();
    });
  return (
    <FormDialog
      title={
        isOne
          ? `Acknowledge ${first?.labels["alertname"] ?? "the alert"}`
          : `Acknowledge ${alerts.length.toLocaleString("en")} alerts`
      }
      action="Acknowledge"
      isReady={!busy.value && author.value.trim() !== "" && !isPast(end)}
      error={isPast(end) ? "This time is in the past." : error.value}
      onSubmit={() =>
        runAndClose((one) =>
          api.acknowledge(one.labels, author.value.trim(), comment.value.trim(), end),
        )
      }
      onClose={onClose}
      below={
        alerts.some((one) => one.acknowledged) && (
          <button
            type="button"
            class="button"
            disabled={busy.value}
            onClick={() => runAndClose((one) => api.withdrawAcknowledgement(one.labels))}
          >
            Withdraw {isOne ? "acknowledgement" : "acknowledgements"}
          </button>
        )
      }
    >
      {coverage}
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
