/** A dialog that confirms the removal of a host from the list. */
import type { Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api } from "../../api/client";
import { causeText, useAttempt } from "../../parts/attempt";
import { FormDialog } from "../../parts/dialog";

interface Props {
  /** The host to remove; `undefined` while the dialog is closed. */
  host: Signal<string | undefined>;
  removed: () => void;
}

export function RemoveHost({ host, removed }: Props) {
  const { busy, error, run } = useAttempt();
  const name = host.value;
  useEffect(() => {
    error.value = undefined;
  }, [name]);
  if (name === undefined) return null;
  const remove = async () => {
    await api.removeHost(name);
    host.value = undefined;
    removed();
  };
  return (
    <FormDialog
      title="Remove this host from the list?"
      action="Remove"
      isReady={!busy.value}
      error={error.value}
      onSubmit={() => void run(remove, (cause) => `Not removed: ${causeText(cause)}`)}
      onClose={() => (host.value = undefined)}
    >
      <p class="removed-name mono">{name}</p>
      <p>The series of the host stay available. The next ping adds the host again.</p>
    </FormDialog>
  );
}
