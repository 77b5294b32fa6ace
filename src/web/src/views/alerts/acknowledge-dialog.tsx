/** Somebody says that they look after an alert, or no longer. */
import { useSignal } from "@preact/signals";
import { api } from "../../api/client";
import type { Alert } from "../../api/types";
import { author } from "../../app/author";
import { useAttempt } from "../../parts/attempt";
import { FormDialog, TextField } from "../../parts/dialog";
import { AuthorField } from "./author-field";

interface Props {
  alert: Alert;
  onClose: () => void;
  onDone: () => void;
}

const COMMENT_MAX = 1000;

export function AcknowledgeDialog({ alert, onClose, onDone }: Props) {
  const { labels, acknowledged } = alert;
  const comment = useSignal(acknowledged?.comment ?? "");
  const { busy, error, run } = useAttempt();
  const act = (change: () => Promise<unknown>) =>
    void run(async () => {
      await change();
      onDone();
      onClose();
    });
  return (
    <FormDialog
      title={`Acknowledge ${labels["alertname"] ?? "the alert"}`}
      action="Acknowledge"
      isReady={!busy.value && author.value.trim() !== ""}
      error={error.value}
      onSubmit={() => act(() => api.acknowledge(labels, author.value.trim(), comment.value.trim()))}
      onClose={onClose}
      below={
        acknowledged && (
          <button
            type="button"
            class="button"
            disabled={busy.value}
            onClick={() => act(() => api.withdrawAcknowledgement(labels))}
          >
            {acknowledged.by} no longer looks after it
          </button>
        )
      }
    >
      <AuthorField label="Who looks after it" isFirst />
      <TextField
        label="What is being done"
        maxLength={COMMENT_MAX}
        value={comment.value}
        onText={(text) => (comment.value = text)}
      />
    </FormDialog>
  );
}
