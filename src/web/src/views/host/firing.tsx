/** The alerts that fire on a host, in its head: each links to its rule. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { href } from "../../app/address";
import { alertsOf, exactSearch, firingOn, nameOfRule, severityOf } from "../alerts/listed";

const EVERY_MS = 15_000;
/** The charts are requested first. */
const FIRST_DELAY_MS = 500;
/** The maximum number of named rules; the link to all of them shows the others. */
const NAMED_MAX = 3;

export function Firing({ name }: { name: string }) {
  const isStarted = useSignal(false);
  useEffect(() => {
    const timer = setTimeout(() => (isStarted.value = true), FIRST_DELAY_MS);
    return () => clearTimeout(timer);
  }, []);
  return isStarted.value ? <FiringRules name={name} /> : null;
}

function FiringRules({ name }: { name: string }) {
  const { data } = useResource("rules", (signal) => api.rules(signal), { everyMs: EVERY_MS }).value;
  const firing = firingOn(alertsOf(data?.data.groups ?? []), name);
  if (firing.length === 0) return null;
  const byRule = new Map(firing.map((row) => [nameOfRule(row.group, row.rule), row]));
  const named = [...byRule].slice(0, NAMED_MAX);
  return (
    <ul class="host-firing" aria-label="Firing alerts">
      {named.map(([rule, row]) => (
        <li key={rule}>
          <a
            class={`badge severity ${severityOf(row.alert).toLowerCase()}`}
            href={href("/alerts", { rule })}
            title={row.alert.annotations["summary"] ?? rule}
          >
            <span class="dot down" aria-hidden="true" />
            {row.rule.name}
          </a>
        </li>
      ))}
      <li>
        <a class="badge" href={href("/alerts", { q: exactSearch("host", name) })}>
          {firing.length} firing
        </a>
      </li>
    </ul>
  );
}
