/** The fleet without hosts: how to add the first host. */
import { useSignal } from "@preact/signals";
import { Icon } from "../../parts/icon";

export function FirstHost() {
  const command = `granary-agent-host --url ${location.origin}`;
  const copied = useSignal(false);
  const copyCommand = async () => {
    try {
      await navigator.clipboard.writeText(command);
      copied.value = true;
    } catch {
      // Without access to the clipboard, the reader can select the text.
    }
  };
  return (
    <section class="card first-host">
      <h2>No hosts yet</h2>
      <p>
        Hosts appear here automatically when an agent on them pings this daemon. Run an agent on the
        host that you want to monitor:
      </p>
      <div class="command">
        <code>{command}</code>
        <button type="button" class="button small" onClick={() => void copyCommand()}>
          <Icon name={copied.value ? "check" : "copy"} />
          {copied.value ? "Copied" : "Copy"}
        </button>
      </div>
      <p class="muted">
        The agent needs no privileges and opens all connections itself. The first row appears within
        seconds. For an agent on another machine, set <code>server.listen</code>: by default the
        daemon only listens on loopback.
      </p>
    </section>
  );
}
