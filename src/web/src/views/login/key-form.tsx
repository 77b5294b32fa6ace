/** The form for a key, which this tab then sends with each request. */
import { useSignal } from "@preact/signals";
import { loadCaller } from "../../api/client";
import { keepKey, key } from "../../api/key";
import { useAttempt } from "../../parts/attempt";
import { PasswordField } from "../../parts/password-field";
import { enter } from "./enter";
import { LoginCard } from "./login-card";

/** Keeps a key that the daemon accepts. */
async function useKey(text: string): Promise<void> {
  if (!/^[\x21-\x7e]+$/.test(text)) {
    throw new Error("A key has no spaces and no special characters.");
  }
  const before = key.peek();
  keepKey(text);
  try {
    enter(await loadCaller());
  } catch (cause) {
    keepKey(before);
    throw cause;
  }
}

export function KeyForm({ onPassword }: { onPassword: () => void }) {
  const text = useSignal("");
  const { busy, error, run } = useAttempt();
  return (
    <LoginCard
      title="Key required"
      about={
        <p class="muted">
          An administrator makes a key in the view Access, or with{" "}
          <code>granary key add NAME --scope read</code>. The page keeps it until this tab is
          closed.
        </p>
      }
      action="Use key"
      isReady={text.value.trim() !== "" && !busy.value}
      error={error.value}
      onSubmit={() => void run(() => useKey(text.value.trim()))}
      below={
        <button type="button" class="button quiet" onClick={onPassword}>
          Use a password
        </button>
      }
    >
      <PasswordField
        label="Key"
        autocomplete="off"
        isFirst
        placeholder="gry_…"
        value={text.value}
        onText={(next) => (text.value = next)}
      />
    </LoginCard>
  );
}
