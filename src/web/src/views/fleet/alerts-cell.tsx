/** The number of alerts that fire on a host, as a link to them. */
import { href } from "../../app/address";
import { Icon } from "../../parts/icon";
import { exactSearch } from "../alerts/listed";
import type { FiringAlerts } from "./firing";

interface Props {
  host: string;
  alerts: FiringAlerts | undefined;
  isActive: boolean;
}

export function AlertsCell({ host, alerts, isActive }: Props) {
  return (
    <div role="gridcell" class="cell col-alerts">
      {alerts && (
        <a
          class={`badge severity ${alerts.worst.toLowerCase()}`}
          href={href("/alerts", { q: exactSearch("host", host) })}
          tabIndex={isActive ? 0 : -1}
          title={alerts.text}
          aria-label={`Alerts of ${host}: ${alerts.text}`}
        >
          <Icon name="bell" />
          <span class="num">{alerts.count.toLocaleString("en")}</span>
        </a>
      )}
    </div>
  );
}
