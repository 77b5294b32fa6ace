/** Dialogs that rotate and revoke a key. */
import { useSignal } from "@preact/signals";
import { api } from "../../api/client";
import { keepKey, keyId } from "../../api/key";
import type { KeyEntry, KeyWithToken } from "../../api/types";
import { DAY, HOUR } from "../../model/zone";
import { useAttempt } from "../../parts/attempt";
import { FormDialog } from "../../parts/dialog";

const OVERLAPS = [
  { ms: 0, label: "None: the present secret ends now" },
  { ms: HOUR, label: "1 hour" },
  { ms: DAY, label: "1 day" },
  { ms: 7 * DAY, label: "7 days" },
  { ms: 30 * DAY, label: "30 days" },
  { ms: 90 * DAY, label: "90 days" },
] as const;

interface RotateProps {
  entry: KeyEntry;
  onClose: () => void;
  onRotated: (shown: KeyWithToken) => void;
}

export function RotateDialog({ entry, onClose, onRotated }: RotateProps) {
  const overlapMs = useSignal<number>(DAY);
  const { busy, error, run } = useAttempt();
  const rotate = async () => {
    const isOwn = entry.id === keyId();
    const rotated = await api.rotateKey(entry.id, overlapMs.value);
    // This tab continues with the new secret.
    if (isOwn) keepKey(rotated.token);
    onRotated(rotated);
  };
  return (
    <FormDialog
      title={`Rotate ${entry.name}`}
      action="Rotate"
      isReady={!busy.value}
      error={error.value}
      onSubmit={() => void run(rotate)}
      onClose={onClose}
    >
      <p>The key gets a new secret. Scopes, senders and expiry stay.</p>
      <label class="labelled">
        Overlap
        <select
          autofocus
          value={overlapMs.value}
          onChange={(event) => (overlapMs.value = Number(event.currentTarget.value))}
        >
          {OVERLAPS.map(({ ms, label }) => (
            <option key={ms} value={ms}>
              {label}
            </option>
          ))}
        </select>
        <small>
          The present secret stays valid for this time, so that clients never stop.
          {entry.overlap_until !== null && " The secret before the present one ends now."}
        </small>
      </label>
    </FormDialog>
  );
}

interface RevokeProps {
  entry: KeyEntry;
  onClose: () => void;
  onRevoked: () => void;
}

export function RevokeDialog({ entry, onClose, onRevoked }: RevokeProps) {
  const { busy, error, run } = useAttempt();
  const revoke = async () => {
    await api.revokeKey(entry.id);
    onClose();
    onRevoked();
  };
  return (
    <FormDialog
      title={`Revoke ${entry.name}?`}
      action="Revoke"
      isReady={!busy.value}
      error={error.value}
      onSubmit={() => void run(revoke)}
      onClose={onClose}
    >
      <p>
        Requests with this key are refused from now on, and its tails end. This cannot be undone.
      </p>
      {entry.id === keyId() && (
        <p class="warn">This tab uses this key: the page will ask for another one.</p>
      )}
    </FormDialog>
  );
}
