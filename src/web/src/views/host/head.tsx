/** The head of a host: its state, its times and its agents. */
import { api } from "../../api/client";
import { useResource, type Resource } from "../../api/resource";
import type { Host, HostAgent, HostsAnswer } from "../../api/types";
import { lengthText } from "../../model/words";
import { Ago, second } from "../../parts/ago";
import { Icon } from "../../parts/icon";
import { isAway } from "../fleet/order";
import { Firing } from "./firing";
import { ForecastFact, type HostForecast } from "./until-full";
import type { ComponentChildren } from "preact";

const EVERY_MS = 10_000;
const STATES = { up: "Up", late: "Late", down: "Down", stopped: "Stopped" } as const;
/** The smallest shown offset of an agent's clock. */
const SKEW_SHOWN_MS = 2000;

interface HeadProps {
  name: string;
  forecast: Resource<HostForecast>;
  /** The actions on the host. */
  children?: ComponentChildren;
}

export function HostHead({ name, forecast, children }: HeadProps) {
  const answer = useResource(`host ${name}`, (signal) => api.hosts({ host: name }, signal), {
    everyMs: EVERY_MS,
  });
  const host = answer.value.data?.hosts.find((entry) => entry.host === name);
  return (
    <header class="host-head">
      <div class="head">
        <a class="button quiet icon-only" href="/" aria-label="To the fleet" title="To the fleet">
          <Icon name="left" />
        </a>
        <h1>{name}</h1>
        {host && (
          <span class={`badge host-state ${host.state}`}>
            <span class={`dot ${host.state}`} aria-hidden="true" />
            {STATES[host.state]}
          </span>
        )}
        <Firing name={name} />
        {children}
      </div>
      {host ? <Facts host={host} forecast={forecast} /> : <NoFacts answer={answer.value} />}
    </header>
  );
}

/** The text without facts: no agent pings for the host, or the request failed. */
function NoFacts({ answer: { data, error } }: { answer: Resource<HostsAnswer> }) {
  if (data) {
    return <p class="host-facts muted">No agent pings for this host, so its state is unknown.</p>;
  }
  if (!error) return <p class="host-facts muted">…</p>;
  return (
    <p class="host-facts warn" role="status">
      Host state unavailable: {error.message}
    </p>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd class="num">{children}</dd>
    </div>
  );
}

function Facts({ host, forecast }: { host: Host; forecast: Resource<HostForecast> }) {
  const tags = Object.entries(host.tags).sort(([a], [b]) => (a < b ? -1 : 1));
  return (
    <>
      <dl class="host-facts">
        <Fact name="Last ping">
          <Ago at={host.pinged} />
        </Fact>
        {host.booted !== null && !isAway(host) && (
          <Fact name="Uptime">
            <Uptime since={host.booted} />
          </Fact>
        )}
        {host.agents.map((agent) => (
          <Fact key={agent.agent + agent.program} name={agentName(agent, host)}>
            {agent.version}
            <span class="muted">
              {" "}
              for <Uptime since={agent.started} />
            </span>
            {Math.abs(agent.skew_ms) >= SKEW_SHOWN_MS && (
              <span class="warn">
                {" "}
                its clock is {lengthText(Math.abs(agent.skew_ms))}{" "}
                {agent.skew_ms > 0 ? "ahead" : "behind"}
              </span>
            )}
          </Fact>
        ))}
        <ForecastFact forecast={forecast} />
        {tags.length > 0 && (
          <div>
            <dt>Tags</dt>
            <dd class="host-tags">
              {tags.map(([tag, value]) => (
                <span key={tag} class="badge">
                  {tag}={value}
                </span>
              ))}
            </dd>
          </div>
        )}
      </dl>
    </>
  );
}

function agentName({ agent, program }: HostAgent, { host }: Host): string {
  return agent === host ? program : `${program} ${agent}`;
}

function Uptime({ since }: { since: number }) {
  return <>{lengthText(second.value - since)}</>;
}
