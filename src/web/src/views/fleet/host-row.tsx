/** A host: a row, or a card on small screens. It is drawn again only when its data changes. */
import { Component } from "preact";
import { hostPath } from "../../app/address";
import type { HostLines, HostState, Spark } from "../../api/types";
import { Ago, second } from "../../parts/ago";
import { Sparkline } from "../../parts/sparkline";
import { bytesText, lengthText, percentText } from "../../model/words";
import { isFullSoon, shortUntilFull, untilFullText } from "../../model/until-full";
import { AlertsCell } from "./alerts-cell";
import { RowMenu } from "./row-menu";
import { isAway, type Row } from "./order";

interface Props {
  row: Row | undefined;
  index: number;
  /** Pixels below the list's top. */
  top: number;
  isActive: boolean;
  hasLines: boolean;
  remove: (host: string) => void;
}

const WORDS: Record<HostState, string> = {
  up: "Up",
  late: "Late",
  down: "Down",
  stopped: "Stopped",
};

export class HostRow extends Component<Props> {
  override shouldComponentUpdate(next: Props) {
    const now = this.props;
    return (
      next.row !== now.row ||
      next.index !== now.index ||
      next.top !== now.top ||
      next.isActive !== now.isActive ||
      next.hasLines !== now.hasLines
    );
  }

  override render({ row, index, top, isActive, hasLines, remove }: Props) {
    if (!row) return null;
    const { host, lines, alerts, full } = row;
    return (
      <div
        class={isActive ? `fleet-row active is-${host.state}` : `fleet-row is-${host.state}`}
        role="row"
        id={`host-${index}`}
        aria-rowindex={index + 2}
        style={{ transform: `translateY(${top}px)` }}
      >
        <div role="gridcell" class={`cell col-state ${host.state}`}>
          <span class={`dot ${host.state}`} aria-hidden="true" />
          {WORDS[host.state]}
        </div>
        <div role="rowheader" class="cell col-host">
          <a href={hostPath(host.host)} tabIndex={isActive ? 0 : -1} title={titleOf(row, hasLines)}>
            {host.host}
          </a>
        </div>
        <AlertsCell host={host.host} alerts={alerts} isActive={isActive} />
        <div role="gridcell" class="cell col-pinged num">
          <Ago at={host.pinged} />
        </div>
        <div role="gridcell" class="cell col-version num">
          {host.version || "–"}
        </div>
        <div role="gridcell" class="cell col-uptime num">
          {host.booted === null || isAway(host) ? "–" : lengthText(second.peek() - host.booted)}
        </div>
        <LineCell name="cpu" spark={lines?.cpu} full={100} hasLines={hasLines} />
        <LineCell name="memory" spark={lines?.memory} full={100} hasLines={hasLines} />
        <LineCell name="disk" spark={lines?.disk} full={100} hasLines={hasLines} />
        <LineCell name="network" spark={lines?.network} hasLines={hasLines} />
        <FilesystemCell filesystem={lines?.filesystem} />
        <div
          role="gridcell"
          class={full && isFullSoon(full) ? "cell col-full num warn" : "cell col-full num"}
          title={full && untilFullText(full)}
        >
          {full && shortUntilFull(full)}
        </div>
        <div role="gridcell" class="cell col-menu">
          <RowMenu host={host} isActive={isActive} remove={remove} />
        </div>
      </div>
    );
  }
}

/** The title of the link, which covers the titles of the other cells. */
function titleOf({ host, lines, full }: Row, hasLines: boolean): string {
  const tags = Object.entries(host.tags).map(([name, value]) => `${name}=${value}`);
  const missing = hasLines ? LINES.filter((name) => !lines?.[name]) : [];
  return [
    host.host,
    ...tags,
    lines?.filesystem?.mount,
    full && untilFullText(full),
    missing.length > 0 && `${NO_SAMPLES}: ${missing.map((name) => LINE_NAMES[name]).join(", ")}`,
  ]
    .filter(Boolean)
    .join("\n");
}

const LINES = ["cpu", "memory", "disk", "network"] as const;
const LINE_NAMES = { cpu: "CPU", memory: "Memory", disk: "Disk", network: "Network" };
const NO_SAMPLES = "No samples in the last hour";

interface LineCellProps {
  name: (typeof LINES)[number];
  spark: Spark | undefined;
  full?: number;
  hasLines: boolean;
}

function LineCell({ name, spark, full, hasLines }: LineCellProps) {
  const last = spark?.last ?? null;
  const text = name === "network" && last !== null ? `${bytesText(last)}/s` : percentText(last);
  const isHigh = name !== "network" && last !== null && last >= 90;
  return (
    <div role="gridcell" class={`cell col-line col-${name}`}>
      <span class="line-name">{LINE_NAMES[name]}</span>
      {hasLines && !spark ? (
        <span class="no-line" title={NO_SAMPLES} />
      ) : (
        <Sparkline spark={spark} {...(full === undefined ? {} : { full })} />
      )}
      <span class={isHigh ? "line-value num high" : "line-value num"}>
        {hasLines || spark ? text : ""}
      </span>
    </div>
  );
}

function FilesystemCell({ filesystem }: { filesystem: HostLines["filesystem"] }) {
  if (!filesystem) {
    return (
      <div role="gridcell" class="cell col-filesystem">
        –
      </div>
    );
  }
  const percent = Math.max(0, Math.min(100, filesystem.used_percent));
  const level = percent >= 95 ? "bad" : percent >= 85 ? "warn" : "";
  return (
    <div role="gridcell" class="cell col-filesystem" title={filesystem.mount}>
      <span class="mount mono">{filesystem.mount}</span>
      <span class={`num percent ${level}`}>{percentText(percent)}</span>
      <span class={`meter ${level}`} aria-hidden="true">
        <span style={{ width: `${percent}%` }} />
      </span>
    </div>
  );
}
