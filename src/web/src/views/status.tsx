/** How the daemon is: health, ingest, limits, and who sends what. */
import type { StatusAnswer } from "../api/types";
import { Ago } from "../parts/ago";
import { Icon } from "../parts/icon";
import { Page } from "../parts/page";
import { bytesText, countText, elapsedText, lengthText } from "../model/words";
import { Ingest } from "./status/ingest";
import { Limits } from "./status/limits";
import { Refused } from "./status/refused";
import { Senders } from "./status/senders";
import { shareOf } from "./status/shares";
import { sum } from "./status/rates";
import { Meter } from "./status/meter";
import { useStatus } from "./status/use-status";
import "../styles/tiles.css";
import "./status/status.css";

export function Status() {
  const { rates, ...answer } = useStatus(5_000);
  return (
    <Page
      class="status-view"
      title="Status"
      what="the status"
      answer={answer}
      about={({ version, now, started }) => (
        <p class="muted num">
          Granary {version}, up {lengthText(now - started)}, answered <Ago at={now} />
        </p>
      )}
    >
      {(status) => (
        <>
          <Health health={status.health} />
          <Tiles status={status} rates={rates} />
          <div class="columns">
            <div>
              <Ingest status={status} rates={rates} />
              <Refused refused={status.refused} />
              <Senders senders={status.senders} />
            </div>
            <Limits limits={status.limits} />
          </div>
        </>
      )}
    </Page>
  );
}

function Health({ health }: { health: StatusAnswer["health"] }) {
  const isWell = health.conditions.length === 0;
  const state = !isWell ? "unwell" : health.warnings.length > 0 ? "warned" : "well";
  return (
    <section class={`card health ${state}`} aria-label="Health">
      <Icon name={isWell ? "check" : "warning"} />
      <div>
        <h2>{isWell ? "All is well" : `The daemon is ${health.state}`}</h2>
        {isWell ? (
          <p class="muted">Samples are accepted and durable; nothing waits for an operator.</p>
        ) : (
          <ul>
            {health.conditions.map(({ name, message }) => (
              <li key={name}>
                <strong>{name.replaceAll("_", " ")}</strong>: {message}
              </li>
            ))}
          </ul>
        )}
        {health.warnings.map(({ name, message }) => (
          <p key={name} class="warn">
            <strong>{name.replaceAll("_", " ")}</strong>: {message}
          </p>
        ))}
      </div>
    </section>
  );
}

function Tiles({ status, rates }: { status: StatusAnswer; rates: Map<string, number> | null }) {
  const { queue, commits, requests, queries, memory } = status;
  return (
    <div class="tiles">
      <div class="tile">
        <span class="tile-label">Samples a second</span>
        <span class="tile-value num">{rates ? countText(sum(rates.values())) : "…"}</span>
        <span class="tile-hint num">
          {countText(sum(status.protocols.map(({ accepted }) => accepted)))} since the start
        </span>
      </div>
      <div class="tile">
        <span class="tile-label">Commit, p99</span>
        <span class="tile-value num">{elapsedText(commits.p99_ms)}</span>
        <span class="tile-hint num">
          p50 {elapsedText(commits.p50_ms)}, longest {elapsedText(commits.max_ms)}
        </span>
      </div>
      <div class="tile">
        <span class="tile-label">Request, p99</span>
        <span class="tile-value num">{elapsedText(requests.p99_ms)}</span>
        <span class="tile-hint num">p50 {elapsedText(requests.p50_ms)}</span>
      </div>
      <div class="tile">
        <span class="tile-label">Queue to the writer</span>
        <span class="tile-value num">{bytesText(queue.bytes)}</span>
        <Meter share={shareOf(queue.bytes, queue.bytes_max)} />
        <span class="tile-hint num">of {bytesText(queue.bytes_max)}</span>
      </div>
      <div class="tile">
        <span class="tile-label">Queries under way</span>
        <span class="tile-value num">{queries.under_way}</span>
        <Meter share={shareOf(queries.memory_bytes, queries.memory_max)} />
        <span class="tile-hint num">
          of {queries.queries_max}; {bytesText(queries.memory_bytes)} of{" "}
          {bytesText(queries.memory_max)}
        </span>
      </div>
      <div class="tile">
        <span class="tile-label">Memory</span>
        <span class="tile-value num">{bytesText(memory.resident)}</span>
        <span class="tile-hint">resident</span>
      </div>
    </div>
  );
}
