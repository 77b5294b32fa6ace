/** No host yet: how to get the first. */
import { useSignal } from "@preact/signals";
import { Icon } from "../../parts/icon";

export function FirstHost() {
  const command = `granary-agent-host --url ${location.origin}`;
  const copied = useSignal(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(command);
      copied.value = true;
    } catch {
      // Without a clipboard the text is there to be marked by hand.
    }
  };
  return (
    <section class="card first-host">
      <h2>No host yet</h2>
      <p>
        Hosts come up here by themselves: an agent on each pings this daemon and sends what it
        measures. Run one on the host that you want to see:
      </p>
      <div class="command">
        <code>{command}</code>
        <button type="button" class="button small" onClick={() => void copy()}>
          <Icon name={copied.value ? "check" : "copy"} />
          {copied.value ? "Copied" : "Copy"}
        </button>
      </div>
      <p class="muted">
        It needs no privileges, and opens all connections itself. The first row comes within
        seconds. From another machine use an address that it can reach; the daemon listens on
        loopback unless <code>server.listen</code> says otherwise.
      </p>
    </section>
  );
}
