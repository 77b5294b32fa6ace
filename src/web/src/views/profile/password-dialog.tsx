/** A dialog that changes the reader's password. */
import { useSignal } from "@preact/signals";
import { api } from "../../api/client";
import { noteCaller } from "../../api/session";
import { useAttempt } from "../../parts/attempt";
import { FormDialog } from "../../parts/dialog";
import { PasswordField } from "../../parts/password-field";
import { NewPassword } from "../login/new-password";
import { passwordFault } from "../login/password";

interface Props {
  user: string;
  onClose: () => void;
}

export function PasswordDialog({ user, onClose }: Props) {
  const present = useSignal("");
  const password = useSignal("");
  const repeated = useSignal("");
  const { busy, error, run } = useAttempt();
  const change = () => {
    error.value = passwordFault(password.value, repeated.value);
    if (error.value !== undefined) return;
    void run(async () => {
      noteCaller(await api.changePassword(present.value, password.value));
      onClose();
    });
  };
  return (
    <FormDialog
      title="Change password"
      action="Change"
      isReady={present.value !== "" && password.value !== "" && !busy.value}
      error={error.value}
      onSubmit={change}
      onClose={onClose}
    >
      <UserName user={user} />
      <PasswordField
        label="Present password"
        autocomplete="current-password"
        isFirst
        value={present.value}
        onText={(text) => (present.value = text)}
      />
      <NewPassword password={password} repeated={repeated} />
    </FormDialog>
  );
}

/** The name for password managers, in a field that nobody sees. */
function UserName({ user }: { user: string }) {
  return (
    <input type="text" class="hidden-text" autocomplete="username" value={user} readOnly hidden />
  );
}
