/** The form of a one-time link: the name and the password of the first administrator. */
import { useSignal } from "@preact/signals";
import { api } from "../../api/client";
import { useAttempt } from "../../parts/attempt";
import { TextField } from "../../parts/dialog";
import { enter } from "./enter";
import { LoginCard } from "./login-card";
import { NewPassword } from "./new-password";
import { passwordFault } from "./password";

export function AcceptForm({ code }: { code: string }) {
  const user = useSignal("");
  const password = useSignal("");
  const repeated = useSignal("");
  const { busy, error, run } = useAttempt();
  const accept = () => {
    error.value = passwordFault(password.value, repeated.value);
    if (error.value !== undefined) return;
    void run(async () => enter(await api.accept(code, user.value.trim(), password.value)));
  };
  return (
    <LoginCard
      title="First administrator"
      about={
        <p class="muted">
          This link makes one user, who may do everything. Choose your name and password.
        </p>
      }
      action="Create administrator"
      isReady={user.value.trim() !== "" && password.value !== "" && !busy.value}
      error={error.value}
      onSubmit={accept}
    >
      <TextField
        label="User"
        isFirst
        autocomplete="username"
        placeholder="ann"
        hint="Letters a to z, digits, and . _ @ + -"
        value={user.value}
        onText={(text) => (user.value = text)}
      />
      <NewPassword label="Password" password={password} repeated={repeated} />
    </LoginCard>
  );
}
