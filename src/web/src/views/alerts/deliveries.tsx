/** The receivers that were notified of an alert, and when. */
import type { AlertDelivery } from "../../api/types";
import { momentText } from "../../app/moment";
import { Ago } from "../../parts/ago";
import { Icon } from "../../parts/icon";

export function Deliveries({ deliveries }: { deliveries: readonly AlertDelivery[] }) {
  return deliveries.map((delivery) => (
    <Delivery key={`${delivery.receiver} ${delivery.integration}`} delivery={delivery} />
  ));
}

function Delivery({ delivery }: { delivery: AlertDelivery }) {
  const { receiver, integration, at, pendingSince, isRefused } = delivery;
  const name = `${receiver} (${integration})`;
  return (
    <>
      {at !== undefined && (
        <p class="alert-note muted" title={momentText(at)}>
          <Icon name="bell" /> Sent to {name} <Ago at={at} />
        </p>
      )}
      {pendingSince !== undefined && (
        <p class="alert-note warn" title={momentText(pendingSince)}>
          <Icon name="warning" /> {isRefused ? "Refused by" : "Not yet sent to"} {name}, due{" "}
          <Ago at={pendingSince} />
        </p>
      )}
    </>
  );
}
