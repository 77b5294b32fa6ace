/** A dialog with the text of a new or rotated key, which the daemon shows once. */
import { useSignal } from "@preact/signals";
import { useId, useRef } from "preact/hooks";
import type { KeyWithToken } from "../../api/types";
import { mayLeave, useUnsavedWarning } from "../../app/guard";
import { momentText } from "../../app/moment";
import { CopyButton } from "../../parts/copy-button";
import { Dialog } from "../../parts/dialog";
import { Icon } from "../../parts/icon";

interface Props {
  shown: KeyWithToken;
  onClose: () => void;
}

export function SecretDialog({ shown: { key, token }, onClose }: Props) {
  const isCopied = useSignal(false);
  const isRefused = useSignal(false);
  const field = useRef<HTMLInputElement>(null);
  const hintId = useId();
  useUnsavedWarning(isCopied.value ? undefined : `The key ${key.name} was not copied.`);
  const note = (isDone: boolean) => {
    isCopied.value = isDone;
    isRefused.value = !isDone;
    if (!isDone) field.current?.select();
  };
  const close = () => {
    if (isCopied.value || mayLeave()) onClose();
  };
  return (
    <Dialog title={`Key ${key.name}`} onClose={close}>
      <div class="secret">
        <input
          ref={field}
          type="text"
          class="mono"
          readOnly
          autofocus
          aria-label="Key"
          aria-describedby={hintId}
          value={token}
          onFocus={(event) => event.currentTarget.select()}
          // The reader copied it by hand.
          onCopy={() => (isCopied.value = true)}
        />
        <CopyButton text={token} class="primary" onCopy={note} />
      </div>
      <p id={hintId}>
        The daemon shows this key only now, because it stores only a hash. When the key is lost,
        rotate it.
      </p>
      {isRefused.value && (
        <p class="problem" role="alert">
          <Icon name="warning" />
          <span>The browser did not copy the key. It is selected: copy it with Ctrl-C.</span>
        </p>
      )}
      {key.overlap_until !== null && (
        <p>The previous secret stays valid until {momentText(key.overlap_until)}.</p>
      )}
      <p class="muted">
        Agents and the <code>granary</code> program read it from a file (<code>--key-file</code>).
        Other clients send it as <code>Authorization: Bearer</code>, or as the password of Basic.
      </p>
      <footer class="dialog-foot">
        <button type="button" class="button" onClick={close}>
          Close
        </button>
      </footer>
    </Dialog>
  );
}
