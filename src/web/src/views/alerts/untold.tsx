/** Says that nobody is told of what fires, and how a receiver is set up. */
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { Icon } from "../../parts/icon";

const STATUS_EVERY_MS = 30_000;

/** Why nobody is told, in the daemon's words; `undefined` where somebody is. */
export function useUntold(): string | undefined {
  const { data } = useResource("status", api.status, { everyMs: STATUS_EVERY_MS }).value;
  return data?.health.warnings.find(({ name }) => name === "untold")?.message;
}

export function Untold({ reason }: { reason: string | undefined }) {
  if (reason === undefined) return null;
  return (
    <section class="card untold" aria-label="Nobody is told">
      <Icon name="warning" />
      <div>
        <h2>Nobody is told when an alert fires</h2>
        <p>{sentence(reason)}</p>
        {reason.includes("set alerts.notifications") && <pre>{SETTINGS}</pre>}
      </div>
    </section>
  );
}

const SETTINGS = `[alerts]
notifications = "/etc/granary/notifications.yml"`;

function sentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
}
