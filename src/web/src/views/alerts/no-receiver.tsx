/** The warning that there are no receivers, with the settings that add one. */
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { mayEditReceivers } from "../../api/session";
import { Callout } from "../../parts/callout";

const STATUS_REFRESH_MS = 30_000;

/** The daemon's warning; `undefined` when there are receivers. */
export function useNoReceiver(): string | undefined {
  const { data } = useResource("status", api.status, { everyMs: STATUS_REFRESH_MS }).value;
  return data?.health.warnings.find(({ name }) => name === "no_receiver")?.message;
}

export function NoReceiver({ reason }: { reason: string | undefined }) {
  if (reason === undefined) return null;
  return (
    <Callout tone="warn" label="No receivers" title="Alerts reach nobody">
      <p>{asSentence(reason)}</p>
      {reason.includes("set alerts.notifications") && (
        <>
          {mayEditReceivers() && (
            <p>
              <a href="/alerts/receivers">Define receivers on the page</a>, or in a file:
            </p>
          )}
          <pre class="file-text">{SETTINGS}</pre>
        </>
      )}
      {reason.includes("on the page") && mayEditReceivers() && (
        <p>
          <a href="/alerts/receivers">Edit receivers</a>
        </p>
      )}
    </Callout>
  );
}

const SETTINGS = `[alerts]
notifications = "/etc/granary/notifications.yml"`;

function asSentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
}
