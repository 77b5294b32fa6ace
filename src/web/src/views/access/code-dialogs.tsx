/** Dialogs that make, show and revoke a one-time code. */
import { useSignal } from "@preact/signals";
import { api } from "../../api/client";
import type { CodeEntry, CodeWithText, NewCode } from "../../api/types";
import { momentText } from "../../app/moment";
import { DAY, HOUR } from "../../model/zone";
import { useAttempt } from "../../parts/attempt";
import { FormDialog, TextField } from "../../parts/dialog";
import { OnceDialog } from "./once-dialog";

const VALIDITIES = [
  { ms: HOUR, label: "1 hour" },
  { ms: DAY, label: "1 day" },
  { ms: 7 * DAY, label: "7 days" },
  { ms: 30 * DAY, label: "30 days" },
] as const;
const SENDERS_MAX = 128;

interface NewProps {
  onClose: () => void;
  onMade: (shown: CodeWithText) => void;
}

export function NewCodeDialog({ onClose, onMade }: NewProps) {
  const senders = useSignal("");
  const validMs = useSignal<number>(DAY);
  const { busy, error, run } = useAttempt();
  const make = async () => {
    const code: NewCode = { valid_ms: validMs.value };
    const prefix = senders.value.trim();
    if (prefix !== "") code.senders = prefix;
    onMade(await api.addCode(code));
  };
  return (
    <FormDialog
      title="New code"
      action="Make code"
      isReady={!busy.value}
      error={error.value}
      onSubmit={() => void run(make)}
      onClose={onClose}
    >
      <p>One agent uses the code, and gets a key that can only send for this agent.</p>
      <TextField
        label="Agents"
        isFirst
        isCode
        maxLength={SENDERS_MAX}
        placeholder="any"
        hint="Only an agent whose name begins with this text can use the code"
        value={senders.value}
        onText={(text) => (senders.value = text)}
      />
      <label class="labelled">
        Valid for
        <select
          value={validMs.value}
          onChange={(event) => (validMs.value = Number(event.currentTarget.value))}
        >
          {VALIDITIES.map(({ ms, label }) => (
            <option key={ms} value={ms}>
              {label}
            </option>
          ))}
        </select>
      </label>
    </FormDialog>
  );
}

interface EnrollProps {
  shown: CodeWithText;
  onClose: () => void;
}

/** The command that uses the code, with this daemon's address as the browser knows it. */
export function EnrollDialog({ shown: { code, text }, onClose }: EnrollProps) {
  return (
    <OnceDialog
      title={`Code ${code.id}`}
      label="Command"
      text={`granary-agent enroll ${location.origin} ${text}`}
      hint={`The daemon shows this code only now. It is valid once, until ${momentText(code.expires)}.`}
      onClose={onClose}
    >
      <p class="muted">
        Run the command on the host of the agent. It writes the key to <code>token_file</code> of
        the agent&apos;s settings, or to <code>--key-file</code>. For a certificate of your own
        authority, add <code>--ca-file</code>.
      </p>
    </OnceDialog>
  );
}

interface RevokeProps {
  entry: CodeEntry;
  onClose: () => void;
  onRevoked: () => void;
}

export function RevokeCodeDialog({ entry, onClose, onRevoked }: RevokeProps) {
  const { busy, error, run } = useAttempt();
  const revoke = async () => {
    await api.revokeCode(entry.id);
    onClose();
    onRevoked();
  };
  return (
    <FormDialog
      title={`Revoke ${entry.id}?`}
      action="Revoke"
      isReady={!busy.value}
      error={error.value}
      onSubmit={() => void run(revoke)}
      onClose={onClose}
    >
      <p>No agent can use the code any more. Keys that agents have stay valid.</p>
    </FormDialog>
  );
}
