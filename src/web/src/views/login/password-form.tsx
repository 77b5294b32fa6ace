/** The login with a name, a password and, with a second factor, a code. */
import { useSignal } from "@preact/signals";
import { api, ApiError } from "../../api/client";
import { useAttempt } from "../../parts/attempt";
import { TextField } from "../../parts/dialog";
import { PasswordField } from "../../parts/password-field";
import { ProviderLink } from "./provider-link";
import { enter } from "./enter";
import { LoginCard } from "./login-card";

export function PasswordForm({ onKey }: { onKey: () => void }) {
  const user = useSignal("");
  const password = useSignal("");
  const code = useSignal("");
  const isCodeNeeded = useSignal(false);
  const { busy, error, run } = useAttempt();
  const logIn = async () => {
    const withCode = isCodeNeeded.value ? { code: code.value.replace(/\s/g, "") } : {};
    try {
      enter(await api.login({ user: user.value.trim(), password: password.value, ...withCode }));
    } catch (cause) {
      code.value = "";
      if (!(cause instanceof ApiError && cause.code === "code_required")) throw cause;
      isCodeNeeded.value = true;
    }
  };
  const restart = () => {
    isCodeNeeded.value = false;
    error.value = undefined;
    password.value = "";
  };
  const isFilled = isCodeNeeded.value
    ? code.value.trim() !== ""
    : user.value.trim() !== "" && password.value !== "";
  return (
    <LoginCard
      title="Log in"
      action="Log in"
      isReady={isFilled && !busy.value}
      error={error.value}
      onSubmit={() => void run(logIn)}
      below={
        <>
          {!isCodeNeeded.value && <ProviderLink />}
          <button type="button" class="button quiet" onClick={isCodeNeeded.value ? restart : onKey}>
            {isCodeNeeded.value ? "Start again" : "Use a key"}
          </button>
        </>
      }
    >
      {isCodeNeeded.value ? (
        <PasswordField
          key="code"
          label="Code"
          autocomplete="one-time-code"
          isFirst
          placeholder="123456"
          hint={`The code of ${user.value.trim()} in the authenticator app`}
          value={code.value}
          onText={(text) => (code.value = text)}
        />
      ) : (
        <>
          <TextField
            label="User"
            isFirst
            autocomplete="username"
            value={user.value}
            onText={(text) => (user.value = text)}
          />
          <PasswordField
            key="password"
            label="Password"
            autocomplete="current-password"
            value={password.value}
            onText={(text) => (password.value = text)}
          />
        </>
      )}
    </LoginCard>
  );
}
