/** Asks before a host is taken off the list. */
import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { api, ApiError } from "../../api/client";

interface Props {
  /** The host that is to go; `undefined` while none is. */
  host: Signal<string | undefined>;
  removed: () => void;
}

export function RemoveHost({ host, removed }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const problem = useSignal("");
  const isBusy = useSignal(false);
  const name = host.value;
  useEffect(() => {
    if (name === undefined) return;
    problem.value = "";
    dialog.current?.showModal();
  }, [name]);
  if (name === undefined) return null;
  const remove = async () => {
    isBusy.value = true;
    try {
      await api.removeHost(name);
      removed();
      dialog.current?.close();
    } catch (cause) {
      problem.value = cause instanceof ApiError ? cause.message : String(cause);
    }
    isBusy.value = false;
  };
  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby="remove-host-title"
      onClose={() => (host.value = undefined)}
    >
      <h2 id="remove-host-title">Remove this host from the list?</h2>
      <p class="dialog-name mono">{name}</p>
      <p>Its series stay and can be charted. It comes back by itself with its next ping.</p>
      {problem.value && (
        <p class="bad" role="alert">
          Not removed: {problem.value}
        </p>
      )}
      <div class="dialog-buttons">
        <button type="button" class="button" autofocus onClick={() => dialog.current?.close()}>
          Keep it
        </button>
        <button
          type="button"
          class="button danger"
          disabled={isBusy.value}
          onClick={() => void remove()}
        >
          Remove
        </button>
      </div>
    </dialog>
  );
}
