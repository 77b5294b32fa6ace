/** The totals of the fleet: hosts by state, samples per second, alerts. */
import { setParams, param } from "../../app/address";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import type { HostsAnswer, HostState } from "../../api/types";
import { Icon } from "../../parts/icon";
import { countText } from "../../model/words";
import { sum } from "../status/rates";
import { useStatus } from "../status/use-status";

const STATES: { state: HostState; label: string; hint: string }[] = [
  { state: "up", label: "Up", hint: "ping on time" },
  { state: "late", label: "Late", hint: "no ping for 90 s" },
  { state: "down", label: "Down", hint: "no ping for 4 min" },
  { state: "stopped", label: "Stopped", hint: "agents shut down" },
];

const chosen = param("state");

export function Totals({ hosts }: { hosts: HostsAnswer | undefined }) {
  // The tile of stopped hosts, which are rare, is shown only when there are any.
  const isShown = ({ state }: { state: HostState }) =>
    state !== "stopped" || chosen.value === state || (hosts?.totals[state] ?? 0) > 0;
  return (
    <div class="tiles fleet-totals">
      {STATES.filter(isShown).map(({ state, label, hint }) => (
        <button
          key={state}
          type="button"
          class={`tile state-${state}`}
          aria-pressed={chosen.value === state}
          title={chosen.value === state ? "Show all hosts" : "Show only these hosts"}
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
      <Alerts />
    </div>
  );
}

/** The tile of the daemon's rules that fire. */
function Alerts() {
  const { data, error } = useResource("rules", (signal) => api.alertingRules(signal), {
    everyMs: 15_000,
  }).value;
  const rules = data?.data.groups.flatMap((group) => group.rules);
  const [firing, pending] = (["firing", "pending"] as const).map(
    (state) =>
      rules?.filter((rule) => rule.type === "alerting" && rule.state === state).length ?? 0,
  );
  return (
    <a class="tile" href="/alerts">
      <span class="tile-label">
        Alerts
        <Icon name="right" />
      </span>
      {rules?.length === 0 ? (
        <>
          <span class="tile-value none">No rules</span>
          <span class="tile-hint">alerts.rules names no files</span>
        </>
      ) : (
        <>
          <span class="tile-value num">{rules ? countText(firing ?? 0) : error ? "–" : "…"}</span>
          <span class="tile-hint">
            {!rules
              ? error
                ? "rules unavailable"
                : "firing rules"
              : `of ${countText(rules.length)} rules firing, ${countText(pending ?? 0)} pending`}
          </span>
        </>
      )}
    </a>
  );
}

function Samples() {
  const { data, rates, error } = useStatus(10_000);
  const total = rates ? sum(rates.values()) : undefined;
  return (
    <a class="tile" href="/status">
      <span class="tile-label">
        Samples per second
        <Icon name="right" />
      </span>
      <span class="tile-value num">
        {error && !data ? "–" : total === undefined ? "…" : countText(total)}
      </span>
      <span class="tile-hint">
        {error && !data
          ? "status unavailable"
          : data
            ? `from ${countText(data.senders.total)} sender${data.senders.total === 1 ? "" : "s"}`
            : "accepted now"}
      </span>
    </a>
  );
}
