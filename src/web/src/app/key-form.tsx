/** The form for the key of a daemon with access control. */
import { useState } from "preact/hooks";
import { api, ApiError } from "../api/client";
import { keepKey, key, keyProblem } from "../api/key";
import "../styles/dialog.css";

/** Returns why a key cannot be used, or nothing. */
async function problemOf(text: string): Promise<string | undefined> {
  if (!/^[\x21-\x7e]+$/.test(text)) return "A key has no spaces and no special characters.";
  const before = key.peek();
  keepKey(text);
  try {
    await api.hosts({ host: "-" });
    return undefined;
  } catch (cause) {
    keepKey(before);
    return cause instanceof ApiError ? cause.message : String(cause);
  }
}

/** Shown in place of the view while the daemon asks for a key. */
export function KeyForm() {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<string | undefined>();
  const [isChecked, setIsChecked] = useState(false);
  const submit = async () => {
    setIsChecked(true);
    const found = await problemOf(text.trim());
    setIsChecked(false);
    setProblem(found);
    // The view starts again, with the key.
    if (found === undefined) keyProblem.value = null;
  };
  return (
    <section class="key-form" aria-labelledby="key-title">
      <h1 id="key-title">Key required</h1>
      <p>
        This daemon answers requests with a key only. An administrator makes one with{" "}
        <code>granary key add NAME --scope read</code>. The page keeps it until this tab is closed.
      </p>
      <form
        class="stacked"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <label class="labelled">
          Key
          <input
            type="password"
            class="mono"
            autocomplete="off"
            autofocus
            placeholder="gry_…"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <p class="problem" role="alert">
          {problem}
        </p>
        <button type="submit" class="button primary" disabled={text.trim() === "" || isChecked}>
          Use key
        </button>
      </form>
    </section>
  );
}

/** Forgets the key of this tab. */
export function forgetKey(): void {
  keepKey("");
  keyProblem.value = "The key was removed from this tab.";
}
