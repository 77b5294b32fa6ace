/** Asks for a title and a name, for a dashboard that is to be kept under a new one. */
import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import { ApiError } from "../../api/client";
import { Dialog, Problem } from "../../parts/dialog";
import { freeName, isSlug, slugOf } from "./draft";

interface Props {
  heading: string;
  action: string;
  title: string;
  /** Names that there are already. */
  taken: readonly string[];
  onClose: () => void;
  /** Fails where it could not be kept. */
  onSave: (name: string, title: string) => Promise<void>;
}

export function NameDialog({ heading, action, taken, onClose, onSave, ...given }: Props) {
  const title = useSignal(given.title);
  const own = useSignal<string | undefined>(undefined);
  const error = useSignal<string | undefined>(undefined);
  const busy = useSignal(false);
  const hint = useId();
  const name = own.value ?? freeName(slugOf(title.value), taken);
  const save = async () => {
    if (title.value.trim() === "") error.value = "Give it a title.";
    else if (!isSlug(name)) error.value = "The name has 1 to 64 of a-z, 0-9 and -.";
    else {
      busy.value = true;
      error.value = undefined;
      try {
        await onSave(name, title.value.trim());
      } catch (cause) {
        error.value = said(cause, name);
      }
      busy.value = false;
    }
  };
  return (
    <Dialog title={heading} onClose={onClose}>
      <form
        class="stacked"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <label class="labelled">
          Title
          <input
            type="text"
            autofocus
            maxLength={200}
            value={title.value}
            onInput={(event) => (title.value = event.currentTarget.value)}
          />
        </label>
        <label class="labelled">
          Name in the address
          <input
            type="text"
            class="mono"
            aria-describedby={hint}
            maxLength={64}
            value={name}
            onInput={(event) => (own.value = event.currentTarget.value)}
          />
          <small id={hint}>/dashboards/{name}</small>
        </label>
        <Problem message={error.value} />
        <footer class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button primary" disabled={busy.value}>
            {action}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

function said(cause: unknown, name: string): string {
  if (cause instanceof ApiError && cause.word === "conflict") {
    return `There is a dashboard called ${name} already: give it another name.`;
  }
  return cause instanceof Error ? cause.message : String(cause);
}
