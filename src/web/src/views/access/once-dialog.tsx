/** A dialog with a text that the daemon shows once: a key, or the command with a code. */
import type { ComponentChildren } from "preact";
import { useSignal } from "@preact/signals";
import { useId, useRef } from "preact/hooks";
import { mayLeave, useUnsavedWarning } from "../../app/guard";
import { CopyButton } from "../../parts/copy-button";
import { Dialog } from "../../parts/dialog";
import { Icon } from "../../parts/icon";

interface Props {
  title: string;
  /** The name of the text, such as `Key`. */
  label: string;
  text: string;
  /** A hint about the text. */
  hint: string;
  onClose: () => void;
  children?: ComponentChildren;
}

export function OnceDialog({ title, label, text, hint, onClose, children }: Props) {
  const isCopied = useSignal(false);
  const isRefused = useSignal(false);
  const field = useRef<HTMLInputElement>(null);
  const hintId = useId();
  useUnsavedWarning(isCopied.value ? undefined : `The ${label.toLowerCase()} was not copied.`);
  const note = (isDone: boolean) => {
    isCopied.value = isDone;
    isRefused.value = !isDone;
    if (!isDone) field.current?.select();
  };
  const close = () => {
    if (isCopied.value || mayLeave()) onClose();
  };
  return (
    <Dialog title={title} onClose={close}>
      <div class="secret">
        <input
          ref={field}
          type="text"
          class="mono"
          readOnly
          autofocus
          aria-label={label}
          aria-describedby={hintId}
          value={text}
          onFocus={(event) => event.currentTarget.select()}
          // The reader copied the text by hand.
          onCopy={() => (isCopied.value = true)}
        />
        <CopyButton text={text} class="primary" onCopy={note} />
      </div>
      <p id={hintId}>{hint}</p>
      {isRefused.value && (
        <p class="problem" role="alert">
          <Icon name="warning" />
          <span>The browser did not copy the text. It is selected: copy it with Ctrl-C.</span>
        </p>
      )}
      {children}
      <footer class="dialog-foot">
        <button type="button" class="button" onClick={close}>
          Close
        </button>
      </footer>
    </Dialog>
  );
}
