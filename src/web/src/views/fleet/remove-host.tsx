/** Asks before a host is taken off the list. */
import { useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api, ApiError } from "../../api/client";
import { Confirm } from "../../parts/dialog";

interface Props {
  /** The host that is to go; `undefined` while none is. */
  host: Signal<string | undefined>;
  removed: () => void;
}

export function RemoveHost({ host, removed }: Props) {
  const problem = useSignal<string | undefined>(undefined);
  const isBusy = useSignal(false);
  const name = host.value;
  useEffect(() => {
    problem.value = undefined;
  }, [name]);
  if (name === undefined) return null;
  const remove = async () => {
    isBusy.value = true;
    try {
      await api.removeHost(name);
      host.value = undefined;
      removed();
    } catch (cause) {
      problem.value = cause instanceof ApiError ? cause.message : String(cause);
    }
    isBusy.value = false;
  };
  return (
    <Confirm
      title="Remove this host from the list?"
      action="Remove"
      busy={isBusy.value}
      error={problem.value && `Not removed: ${problem.value}`}
      onYes={() => void remove()}
      onNo={() => (host.value = undefined)}
    >
      <p class="removed-name mono">{name}</p>
      <p>Its series stay and can be charted. It comes back by itself with its next ping.</p>
    </Confirm>
  );
}
