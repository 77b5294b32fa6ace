/** The status of the daemon: health, ingest, limits and senders. */
import type { StatusAnswer } from "../api/types";
import { Ago } from "../parts/ago";
import { Callout } from "../parts/callout";
import { Page } from "../parts/page";
import { bytesText, countWithNoun, countText, elapsedText, lengthText } from "../model/words";
import { Cardinality } from "./status/cardinality";
import { Ingest } from "./status/ingest";
import { Limits } from "./status/limits";
import { Refused } from "./status/refused";
import { Senders } from "./status/senders";
import { limitsNear, shareOf } from "./status/shares";
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
          <Health health={status.health} limits={status.limits} />
          <Tiles status={status} rates={rates} />
          <div class="columns">
            <div>
              <Ingest status={status} rates={rates} />
              <Refused refused={status.refused} />
              <Senders senders={status.senders} />
              <Cardinality />
            </div>
            <Limits limits={status.limits} />
          </div>
        </>
      )}
    </Page>
  );
}

function Health({ health, limits }: Pick<StatusAnswer, "health" | "limits">) {
  const { state, conditions, warnings } = health;
  const near = limitsNear(limits);
  const tone = conditions.length > 0 ? "bad" : warnings.length + near > 0 ? "warn" : "good";
  const titles = {
    good: "All is well",
    warn: "Serving, with warnings",
    bad: `The daemon is ${state.replaceAll("_", " ")}`,
  };
  return (
    <Callout tone={tone} label="Health" title={titles[tone]}>
      {tone !== "bad" && <p class="muted">Samples are accepted and durable.</p>}
      <ul>
        {[...conditions, ...warnings].map(({ name, message }) => (
          <li key={name}>
            <strong>{name.replaceAll("_", " ")}</strong>: {message}
          </li>
        ))}
        {near > 0 && (
          <li>
            <strong>limits</strong>: {countWithNoun(near, "limit")} nearly reached
          </li>
        )}
      </ul>
    </Callout>
  );
}

function Tiles({ status, rates }: { status: StatusAnswer; rates: Map<string, number> | null }) {
  const { queue, commits, requests, queries, memory } = status;
  return (
    <div class="tiles">
      <div class="tile">
        <span class="tile-label">Samples per second</span>
        <span class="tile-value num">{rates ? countText(sum(rates.values())) : "…"}</span>
        <span class="tile-hint num">
          {countText(sum(status.protocols.map(({ accepted }) => accepted)))} since start
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
        <span class="tile-label">Writer queue</span>
        <span class="tile-value num">{bytesText(queue.bytes)}</span>
        <Meter share={shareOf(queue.bytes, queue.bytes_max)} />
        <span class="tile-hint num">of {bytesText(queue.bytes_max)}</span>
      </div>
      <div class="tile">
        <span class="tile-label">Running queries</span>
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
