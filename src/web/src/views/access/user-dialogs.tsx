/** Dialogs that change and remove a user. */
import { useSignal } from "@preact/signals";
import { api, loadCaller } from "../../api/client";
import { caller } from "../../api/session";
import type { UserChanges, UserEntry } from "../../api/types";
import { isSame } from "../../model/same";
import { useAttempt } from "../../parts/attempt";
import { FormDialog } from "../../parts/dialog";
import { passwordFault } from "../login/password";
import { FirstPassword } from "./first-password";
import { RoleFields } from "./role-fields";
import { rolesFault, rolesOf, rowsOf } from "./roles";

interface Props {
  user: UserEntry;
  onClose: () => void;
  onDone: () => void;
}

export function ChangeUserDialog({ user, onClose, onDone }: Props) {
  const rows = useSignal(rowsOf(user.roles));
  const isDisabled = useSignal(user.disabled);
  const isTotpRemoved = useSignal(false);
  const isLoggedOut = useSignal(false);
  const isPasswordSet = useSignal(false);
  const password = useSignal("");
  const { busy, error, run } = useAttempt();
  const change = () => {
    error.value =
      rolesFault(rows.value) ??
      (isPasswordSet.value ? passwordFault(password.value, password.value) : undefined);
    if (error.value !== undefined) return;
    const changes: UserChanges = {};
    const roles = rolesOf(rows.value);
    if (!isSame(roles, user.roles)) changes.roles = roles;
    if (isDisabled.value !== user.disabled) changes.disabled = isDisabled.value;
    if (isTotpRemoved.value) changes.totp = false;
    if (isLoggedOut.value) changes.logout = true;
    if (isPasswordSet.value) changes.password = password.value;
    void run(async () => {
      if (Object.keys(changes).length > 0) await api.changeUser(user.name, changes);
      // A change of the caller's own user changes the caller's session, too.
      if (user.name === caller.peek()?.name) await loadCaller();
      onDone();
      onClose();
    });
  };
  return (
    <FormDialog
      title={`Change ${user.name}`}
      action="Save"
      isReady={!busy.value}
      error={error.value}
      onSubmit={change}
      onClose={onClose}
    >
      {user.password ? (
        <RoleFields rows={rows} />
      ) : (
        <p class="muted">The user&apos;s groups at the provider give the roles.</p>
      )}
      <Choice label="Disabled: the user cannot log in" value={isDisabled} />
      {user.totp && <Choice label="Turn off the second factor" value={isTotpRemoved} />}
      {user.sessions > 0 && <Choice label="End all sessions" value={isLoggedOut} />}
      {user.password && <Choice label="Set a new password" value={isPasswordSet} />}
      {isPasswordSet.value && <FirstPassword password={password} />}
      <p class="muted">Each of these changes logs the user out.</p>
    </FormDialog>
  );
}

function Choice({ label, value }: { label: string; value: { value: boolean } }) {
  return (
    <label class="checked">
      <input
        type="checkbox"
        checked={value.value}
        onChange={(event) => (value.value = event.currentTarget.checked)}
      />
      {label}
    </label>
  );
}

export function RemoveUserDialog({ user, onClose, onDone }: Props) {
  const { busy, error, run } = useAttempt();
  const remove = async () => {
    await api.removeUser(user.name);
    onClose();
    onDone();
  };
  return (
    <FormDialog
      title={`Remove ${user.name}?`}
      action="Remove"
      isReady={!busy.value}
      error={error.value}
      onSubmit={() => void run(remove)}
      onClose={onClose}
    >
      <p>
        The user is logged out and cannot log in again. Keys and objects that the user made stay.
      </p>
    </FormDialog>
  );
}
