/** The fleet: every host, its state, and its last hour. */
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { address, setParams } from "../app/address";
import { api, now } from "../api/client";
import { useResource } from "../api/resource";
import type { HostsAnswer, SparklinesAnswer } from "../api/types";
import { Empty, Failed } from "../parts/states";
import { choiceOf } from "./fleet/choice";
import { followHosts } from "./fleet/follow";
import { Filters } from "./fleet/filters";
import { FirstHost } from "./fleet/first-host";
import { FleetTable } from "./fleet/fleet-table";
import { filterRows, heldOrder, isSameOrder, ranksOf, rowsOf, sortRows } from "./fleet/order";
import { RemoveHost } from "./fleet/remove-host";
import { useFleetForecast } from "./fleet/until-full";
import { Totals } from "./fleet/totals";
import { countWithNoun } from "../model/words";
import "../styles/tiles.css";
import "./fleet/fleet.css";

const HOSTS_REFRESH_MS = 10_000;
/** The sparklines have a point for each complete minute; samples arrive a few seconds later. */
const LATE_SAMPLES_MS = 8_000;
const untilNextPoint = () => 60_000 - (now() % 60_000) + LATE_SAMPLES_MS;

export function Fleet() {
  const loadHosts = useMemo(() => followHosts(api.hosts), []);
  const hosts = useResource("hosts", loadHosts, { everyMs: HOSTS_REFRESH_MS }).value;
  const lines = useResource("lines", api.sparklines, { everyMs: untilNextPoint }).value;
  const removing = useSignal<string | undefined>(undefined);
  useEffect(() => {
    document.title = "Fleet · Granary";
  }, []);
  const remove = useMemo(() => (host: string) => (removing.value = host), []);
  return (
    <div class="fleet">
      <div class="head">
        <h1>Fleet</h1>
        {hosts.error && hosts.data && (
          <p class="stale-note" role="status">
            Refresh failed: {hosts.error.message}
          </p>
        )}
      </div>
      <Totals hosts={hosts.data} />
      {hosts.data ? (
        <Hosts answer={hosts.data} lines={lines.data} linesFailed={!!lines.error} remove={remove} />
      ) : hosts.error ? (
        <section class="card">
          <Failed
            message={`Cannot load the hosts: ${hosts.error.message}`}
            onRetry={hosts.reload}
          />
        </section>
      ) : (
        <Skeleton />
      )}
      <RemoveHost host={removing} removed={hosts.reload} />
    </div>
  );
}

function Skeleton() {
  return (
    <section class="card skeleton" role="status" aria-label="Loading the hosts">
      {Array.from({ length: 12 }, (_, index) => (
        <div key={index} class="skeleton-row" aria-hidden="true">
          <i />
          <i />
          <i />
          <i />
          <i />
        </div>
      ))}
    </section>
  );
}

interface HostsProps {
  answer: HostsAnswer;
  lines: SparklinesAnswer | undefined;
  linesFailed: boolean;
  remove: (host: string) => void;
}

function Hosts({ answer, lines, linesFailed, remove }: HostsProps) {
  const params = address.value.params;
  const choice = useMemo(() => choiceOf(params), [params]);
  const names = useMemo(() => answer.hosts.map(({ host }) => host), [answer]);
  const forecast = useFleetForecast(names, lines?.hosts);
  const rows = useMemo(
    () => rowsOf(answer.hosts, lines?.hosts, answer.alerts, forecast),
    [answer, lines, forecast],
  );
  const ranks = useRanks(answer);
  const filtered = useMemo(() => filterRows(rows, choice), [rows, choice]);
  const sorted = useMemo(() => sortRows(filtered, choice, ranks), [filtered, choice, ranks]);
  const isHeld = useSignal(false);
  const loaded = `${lines ? "with lines" : ""} ${forecast ? "with forecast" : ""}`;
  const request = `${params.toString()} ${loaded}`;
  const byName = useMemo(() => new Map(rows.map((row) => [row.host.host, row])), [rows]);
  const currentOrder = useMemo(() => sorted.map(({ host }) => host.host), [sorted]);
  const { order, isStale, renew } = useHeldOrder(currentOrder, byName, request, isHeld.value);
  if (answer.hosts.length === 0) return <FirstHost />;
  const shown = order.map((name) => byName.get(name)).filter((row) => row !== undefined);
  return (
    <>
      <Filters rows={rows} choice={choice} />
      <div class="fleet-count" role="status">
        <span>
          {shown.length === rows.length
            ? countWithNoun(rows.length, "host")
            : `${shown.length.toLocaleString("en")} of ${countWithNoun(rows.length, "host")}`}
        </span>
        {linesFailed && !lines && <span class="warn">Sparklines unavailable</span>}
        {isStale && (
          <span class="order-note">
            Order is outdated
            <button type="button" class="button small" onClick={renew}>
              Sort again
            </button>
          </span>
        )}
      </div>
      {shown.length === 0 ? (
        <section class="card">
          <Empty title="No matching host">
            <p>None of {countWithNoun(rows.length, "host")} matches all filters.</p>
            <button
              type="button"
              class="button"
              onClick={() => setParams({ q: undefined, state: undefined, tags: undefined })}
            >
              Show all
            </button>
          </Empty>
        </section>
      ) : (
        <FleetTable
          rows={shown}
          choice={choice}
          hasLines={lines !== undefined || linesFailed}
          hold={(held) => (isHeld.value = held)}
          remove={remove}
        />
      )}
    </>
  );
}

/** Ranks of the names by natural order, computed again when the names change. */
function useRanks(answer: HostsAnswer): Map<string, number> {
  const rankedNames = useRef<{ names: string[]; ranks: Map<string, number> }>({
    names: [],
    ranks: new Map(),
  });
  const names = answer.hosts.map(({ host }) => host);
  if (!isSameOrder(names, rankedNames.current.names))
    rankedNames.current = { names, ranks: ranksOf(names) };
  return rankedNames.current.ranks;
}

/**
 * The order on screen. It is held while the reader points at a row or moves through the rows, so
 * that rows do not move under the mouse. A choice of the reader sorts immediately.
 */
function useHeldOrder(
  currentOrder: readonly string[],
  present: ReadonlyMap<string, unknown>,
  request: string,
  isHeld: boolean,
) {
  const held = useRef<{ order: readonly string[]; key: string }>({ order: [], key: "" });
  const renewals = useSignal(0);
  const key = `${request} ${renewals.value}`;
  const isNew = held.current.key !== key || held.current.order.length === 0;
  if (!isHeld || isNew) held.current = { order: currentOrder, key };
  const order = isHeld ? heldOrder(held.current.order, new Set(present.keys())) : currentOrder;
  const renew = () => renewals.value++;
  return { order, isStale: isHeld && !isSameOrder(order, currentOrder), renew };
}
