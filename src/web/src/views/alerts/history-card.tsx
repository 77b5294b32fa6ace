/** When a rule's alerts were pending and fired: each stretch with how long it was and its value. */
import { useSignal } from "@preact/signals";
import { now } from "../../api/client";
import { useResource } from "../../api/resource";
import type { AlertingRule, RuleGroup } from "../../api/types";
import { address } from "../../app/address";
import { preferredZone } from "../../app/preferences";
import { DAY, clockAt, dateText, timeText } from "../../model/zone";
import { counted, lengthText } from "../../model/words";
import { Ago } from "../../parts/ago";
import { Failed, Loading } from "../../parts/states";
import { Table, type Head } from "../../parts/table";
import { loadHistory, type Episode } from "./history";
import { valueText } from "./listed";

const RANGES = [
  { name: "24 hr", length: DAY },
  { name: "1 wk", length: 7 * DAY },
  { name: "1 mo", length: 30 * DAY },
];
const EVERY_MS = 60_000;
const ROWS_MAX = 100;
const HEADS: (string | Head)[] = [
  "State",
  "Labels",
  "From",
  { name: "For", isNumber: true },
  { name: "Value", isNumber: true },
];

export function HistoryCard({ rule, group }: { rule: AlertingRule; group: RuleGroup }) {
  const length = useSignal(DAY);
  const isPendingShown = useSignal(false);
  const interval = Math.max(group.interval * 1000, 1000);
  const { data, error, reload } = useResource(
    `${rule.name} ${length.value}`,
    (signal) => loadHistory(rule, { length: length.value, interval, now: now() }, signal),
    EVERY_MS,
  ).value;
  const shown = data?.filter(({ state }) => isPendingShown.value || state !== "pending");
  return (
    <section class="card section" aria-label="History">
      <div class="card-head">
        <h2>History</h2>
        <label class="checked muted">
          <input
            type="checkbox"
            checked={isPendingShown.value}
            onInput={(event) => (isPendingShown.value = event.currentTarget.checked)}
          />
          Pending, too
        </label>
        <div class="choices" role="group" aria-label="Range of the history">
          {RANGES.map((range) => (
            <button
              key={range.name}
              type="button"
              aria-pressed={length.value === range.length}
              onClick={() => (length.value = range.length)}
            >
              {range.name}
            </button>
          ))}
        </div>
      </div>
      {!shown ? (
        error ? (
          <Failed message={`The history cannot be shown: ${error.message}`} onRetry={reload} />
        ) : (
          <Loading what="the history" />
        )
      ) : shown.length === 0 ? (
        <p class="nothing muted">It did not fire.</p>
      ) : (
        <Table label="Stretches" class="history" heads={HEADS}>
          {shown.slice(0, ROWS_MAX).map((episode) => (
            <EpisodeRow key={`${episode.key} ${episode.start}`} episode={episode} />
          ))}
        </Table>
      )}
      {shown && shown.length > ROWS_MAX && (
        <p class="card-foot muted">
          The newest {ROWS_MAX} of {counted(shown.length, "stretch")}.
        </p>
      )}
    </section>
  );
}

function EpisodeRow({ episode }: { episode: Episode }) {
  const { state, labels, start, end, value } = episode;
  const isFiring = state !== "pending";
  const pairs = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
  return (
    <tr>
      <th scope="row">
        <span class="badge">
          <span class={isFiring ? "dot down" : "dot late"} aria-hidden="true" />
          {state === "no_data" ? "No data" : isFiring ? "Fired" : "Pending"}
        </span>
      </th>
      <td>
        <ul class="labels">
          {pairs.map(([name, text]) => (
            <li key={name} class="badge">
              {name}={text}
            </li>
          ))}
        </ul>
      </td>
      <td class="num nowrap">{momentText(start)}</td>
      <td class="num nowrap">
        {end === undefined ? (
          <>
            still, since <Ago at={start} />
          </>
        ) : (
          lengthText(end - start)
        )}
      </td>
      <td class="num nowrap">{value === undefined ? "–" : valueText(value)}</td>
    </tr>
  );
}

/** A time by the clocks that charts have. */
export function momentText(at: number): string {
  const zone = address.value.params.get("tz") ?? preferredZone.value;
  const clock = clockAt(zone, at);
  return `${dateText(clock)} ${timeText(clock)}`;
}
