/** What the fleet comes to: hosts by state, samples a second, alerts. */
import { setParams, param } from "../../app/address";
import type { HostsAnswer, HostState } from "../../api/types";
import { Icon } from "../../parts/icon";
import { countText } from "../../model/words";
import { sum } from "../status/rates";
import { useStatus } from "../status/use-status";

const STATES: { state: HostState; label: string; hint: string }[] = [
  { state: "up", label: "Up", hint: "ping as they should" },
  { state: "late", label: "Late", hint: "no ping for 90 s" },
  { state: "down", label: "Down", hint: "no ping for 4 min" },
];

const chosen = param("state");

export function Totals({ hosts }: { hosts: HostsAnswer | undefined }) {
  return (
    <div class="tiles fleet-totals">
      {STATES.map(({ state, label, hint }) => (
        <button
          key={state}
          type="button"
          class={`tile state-${state}`}
          aria-pressed={chosen.value === state}
          title={chosen.value === state ? "Show all hosts" : `Show these hosts alone`}
          onClick={() => setParams({ state: chosen.value === state ? undefined : state })}
        >
          <span class="tile-label">
            <span class={`dot ${state}`} aria-hidden="true" />
            {label}
          </span>
          <span class="tile-value num">{hosts ? countText(hosts.totals[state]) : "–"}</span>
          <span class="tile-hint">{hint}</span>
        </button>
      ))}
      <Samples />
      <div class="tile">
        <span class="tile-label">Alerts</span>
        <span class="tile-value none">None set up</span>
        <span class="tile-hint">Granary has no rules yet</span>
      </div>
    </div>
  );
}

function Samples() {
  const { data, rates, error } = useStatus(10_000);
  const total = rates ? sum(rates.values()) : undefined;
  return (
    <a class="tile" href="/status">
      <span class="tile-label">
        Samples a second
        <Icon name="right" />
      </span>
      <span class="tile-value num">
        {error && !data ? "–" : total === undefined ? "…" : countText(total)}
      </span>
      <span class="tile-hint">
        {error && !data
          ? "the status cannot be read"
          : data
            ? `from ${countText(data.senders.total)} sender${data.senders.total === 1 ? "" : "s"}`
            : "accepted now"}
      </span>
    </a>
  );
}
