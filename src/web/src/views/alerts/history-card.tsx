/** The history of a rule's alerts: duration, value and acknowledgement of each episode. */
import { api, now } from "../../api/client";
import { useResource } from "../../api/resource";
import type { AlertEpisode, AlertingRule, RuleGroup } from "../../api/types";
import { movedPath, scopeOf } from "../../chart/moved-path";
import { countWithNoun, lengthText } from "../../model/words";
import { HOUR, MINUTE } from "../../model/zone";
import { Ago } from "../../parts/ago";
import { Failed, Loading } from "../../parts/states";
import { Table, type Column } from "../../parts/table";
import { instantOf, valueText } from "./listed";
import { momentText } from "../../app/moment";

const REFRESH_MS = 30_000;
const ROWS_MAX = 100;
const COLUMNS: (string | Column)[] = [
  "State",
  "Labels",
  { name: "From", isNumber: true },
  { name: "For", isNumber: true },
  { name: "Last value", isNumber: true },
  "Acknowledged by",
  "Cause",
];
/** The time range before an episode in which its cause may be, and the longest time range. */
const CAUSE_BEFORE_MS = 10 * MINUTE;
const CAUSE_MAX_MS = 6 * HOUR;

export function HistoryCard({ rule, group }: { rule: AlertingRule; group: RuleGroup }) {
  const request = { rule: rule.name, group: group.name, file: group.file, limit: ROWS_MAX };
  const { data, error, reload } = useResource(
    JSON.stringify(request),
    (signal) => api.alertHistory(request, signal),
    { everyMs: REFRESH_MS },
  ).value;
  const episodes = data?.data.history;
  return (
    <section class="card section" aria-label="History">
      <div class="card-head">
        <h2>History</h2>
      </div>
      {!episodes ? (
        error ? (
          <Failed message={`Cannot load the history: ${error.message}`} onRetry={reload} />
        ) : (
          <Loading what="the history" />
        )
      ) : episodes.length === 0 ? (
        <p class="nothing muted">No episodes yet.</p>
      ) : (
        <Table label="Episodes" class="history" columns={COLUMNS}>
          {episodes.map((episode) => (
            <EpisodeRow
              key={JSON.stringify([episode.labels, episode.firedAt])}
              episode={episode}
              forMs={rule.duration * 1000}
            />
          ))}
        </Table>
      )}
      {episodes?.length === ROWS_MAX && (
        <p class="card-foot muted">The newest {countWithNoun(ROWS_MAX, "episode")}.</p>
      )}
    </section>
  );
}

function EpisodeRow({ episode, forMs }: { episode: AlertEpisode; forMs: number }) {
  const { state, labels, seconds, value, acknowledged } = episode;
  const pairs = Object.entries(labels).filter(([name]) => name !== "alertname");
  const from = instantOf(episode.firedAt);
  return (
    <tr>
      <th scope="row">
        <span class="badge">
          <span class={seconds === null ? "dot down" : "dot"} aria-hidden="true" />
          {state === "no_data" ? "No data" : "Fired"}
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
      <td class="num nowrap">{from !== undefined && momentText(from)}</td>
      <td class="num nowrap">
        {seconds !== null ? (
          lengthText(seconds * 1000)
        ) : (
          <>ongoing, since {from !== undefined && <Ago at={from} />}</>
        )}
      </td>
      <td class="num nowrap">{valueText(value)}</td>
      <td title={acknowledged?.comment}>{acknowledged?.by ?? "–"}</td>
      <td class="nowrap">
        {from !== undefined && <Cause episode={episode} from={from - forMs} />}
      </td>
    </tr>
  );
}

/** A link to the series of the alert's host that moved when the condition began. */
function Cause({ episode: { labels, seconds }, from }: { episode: AlertEpisode; from: number }) {
  const start = from - CAUSE_BEFORE_MS;
  const until = seconds === null ? now() : from + seconds * 1000;
  const end = Math.min(Math.max(until, from + CAUSE_BEFORE_MS), start + CAUSE_MAX_MS, now());
  return (
    <a href={movedPath(scopeOf([{ metric: "", tags: labels }]), { start, end })}>What moved?</a>
  );
}
