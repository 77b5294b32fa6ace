/** Dialogs that turn the second factor on and off (RFC 6238). */
import { useSignal } from "@preact/signals";
import { api } from "../../api/client";
import { noteCaller } from "../../api/session";
import type { TotpSecret } from "../../api/types";
import { useAttempt } from "../../parts/attempt";
import { FormDialog } from "../../parts/dialog";
import { PasswordField } from "../../parts/password-field";
import { QrCode } from "./qr-code";

interface TotpProps {
  user: string;
  onClose: () => void;
}

/** Asks for the password, then shows the secret and asks for its first code. */
export function TotpDialog({ user, onClose }: TotpProps) {
  const password = useSignal("");
  const code = useSignal("");
  const secret = useSignal<TotpSecret | undefined>(undefined);
  const { busy, error, run } = useAttempt();
  const next = async () => {
    if (secret.value === undefined) {
      secret.value = await api.beginTotp(password.value);
      return;
    }
    const digits = code.value.replace(/\s/g, "");
    code.value = "";
    noteCaller(await api.confirmTotp(digits));
    onClose();
  };
  const isFilled = (secret.value === undefined ? password.value : code.value.trim()) !== "";
  return (
    <FormDialog
      title="Turn on the second factor"
      action={secret.value === undefined ? "Next" : "Turn on"}
      isReady={isFilled && !busy.value}
      error={error.value}
      onSubmit={() => void run(next)}
      onClose={onClose}
    >
      {secret.value === undefined ? (
        <PasswordField
          key="password"
          label="Password"
          autocomplete="current-password"
          isFirst
          value={password.value}
          onText={(text) => (password.value = text)}
        />
      ) : (
        <>
          <Secret user={user} secret={secret.value} />
          <PasswordField
            key="code"
            label="Code"
            autocomplete="one-time-code"
            isFirst
            placeholder="123456"
            hint="The code that the app shows now"
            value={code.value}
            onText={(text) => (code.value = text)}
          />
        </>
      )}
    </FormDialog>
  );
}

function Secret({ user, secret: { secret, uri } }: { user: string; secret: TotpSecret }) {
  return (
    <div class="totp-secret">
      <QrCode text={uri} label={`QR code of the secret of ${user}`} />
      <div class="totp-text">
        <p>Scan the code with an authenticator app, or enter the secret:</p>
        <code class="totp-groups">{secret.match(/.{1,4}/g)?.join(" ")}</code>
        <p>
          On this device: <a href={uri}>open the app</a>
        </p>
      </div>
      <details>
        <summary>Address of the secret</summary>
        <code>{uri}</code>
      </details>
    </div>
  );
}

export function RemoveTotpDialog({ onClose }: { onClose: () => void }) {
  const password = useSignal("");
  const { busy, error, run } = useAttempt();
  const remove = async () => {
    noteCaller(await api.removeTotp(password.value));
    onClose();
  };
  return (
    <FormDialog
      title="Turn off the second factor"
      action="Turn off"
      isReady={password.value !== "" && !busy.value}
      error={error.value}
      onSubmit={() => void run(remove)}
      onClose={onClose}
    >
      <p>From now on, the password is enough to log in.</p>
      <PasswordField
        label="Password"
        autocomplete="current-password"
        isFirst
        value={password.value}
        onText={(text) => (password.value = text)}
      />
    </FormDialog>
  );
}
