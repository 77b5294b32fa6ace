/** A dialog that adds a user. */
import { useSignal } from "@preact/signals";
import { api } from "../../api/client";
import { useAttempt } from "../../parts/attempt";
import { FormDialog, TextField } from "../../parts/dialog";
import { passwordFault } from "../login/password";
import { FirstPassword } from "./first-password";
import { RoleFields } from "./role-fields";
import { newRow, rolesFault, rolesOf, type RoleRow } from "./roles";

interface Props {
  onClose: () => void;
  onAdded: () => void;
}

const NAME_MAX = 64;

export function NewUserDialog({ onClose, onAdded }: Props) {
  const name = useSignal("");
  const password = useSignal("");
  const rows = useSignal<RoleRow[]>([newRow([])]);
  const { busy, error, run } = useAttempt();
  const add = () => {
    error.value = rolesFault(rows.value) ?? passwordFault(password.value, password.value);
    if (error.value !== undefined) return;
    void run(async () => {
      const roles = rolesOf(rows.value);
      await api.addUser({ name: name.value.trim(), password: password.value, roles });
      onAdded();
      onClose();
    });
  };
  return (
    <FormDialog
      title="New user"
      action="Add"
      isReady={name.value.trim() !== "" && password.value !== "" && !busy.value}
      error={error.value}
      onSubmit={add}
      onClose={onClose}
    >
      <TextField
        label="Name"
        isFirst
        autocomplete="off"
        maxLength={NAME_MAX}
        placeholder="ann"
        hint="Letters a to z, digits, and . _ @ + -"
        value={name.value}
        onText={(text) => (name.value = text)}
      />
      <FirstPassword password={password} />
      <RoleFields rows={rows} />
    </FormDialog>
  );
}
