/** The fields of a new password, which is typed twice. */
import type { Signal } from "@preact/signals";
import { PasswordField } from "../../parts/password-field";
import { PASSWORD_LENGTH_MIN } from "./password";

interface Props {
  password: Signal<string>;
  repeated: Signal<string>;
  label?: string;
}

export function NewPassword({ password, repeated, label = "New password" }: Props) {
  return (
    <>
      <PasswordField
        label={label}
        autocomplete="new-password"
        hint={`${PASSWORD_LENGTH_MIN} characters or more`}
        value={password.value}
        onText={(text) => (password.value = text)}
      />
      <PasswordField
        label="Repeat password"
        autocomplete="new-password"
        value={repeated.value}
        onText={(text) => (repeated.value = text)}
      />
    </>
  );
}
