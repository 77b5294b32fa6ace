/** A field for the password that an administrator sets for a user: readable, can be generated. */
import type { Signal } from "@preact/signals";
import { useId } from "preact/hooks";
import { CopyButton } from "../../parts/copy-button";
import { Icon } from "../../parts/icon";
import { passwordFrom } from "../login/password";

/** The number of letters and digits. */
const LETTERS = 20;

export function FirstPassword({ password }: { password: Signal<string> }) {
  const hintId = useId();
  const generate = () =>
    (password.value = passwordFrom(crypto.getRandomValues(new Uint8Array(LETTERS))));
  return (
    <div class="labelled">
      <label class="labelled">
        Password
        <input
          type="text"
          class="mono"
          autocomplete="off"
          spellcheck={false}
          aria-describedby={hintId}
          value={password.value}
          onInput={(event) => (password.value = event.currentTarget.value)}
        />
      </label>
      <div class="access-actions">
        <button type="button" class="button small" onClick={generate}>
          <Icon name="refresh" /> Generate
        </button>
        <CopyButton text={password.value} class="small" />
      </div>
      <small id={hintId}>Hand it over; it can be changed in the profile after the login.</small>
    </div>
  );
}
