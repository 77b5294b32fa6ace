/** The audit: changes and refused requests, newest first. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api, now } from "../../api/client";
import { useResource } from "../../api/resource";
import type { AuditRecord } from "../../api/types";
import { param, setParams } from "../../app/address";
import { zoneShown } from "../../app/moment";
import { zoneName } from "../../model/zone";
import { useAttempt } from "../../parts/attempt";
import { ErrorLine } from "../../parts/dialog";
import { narrow } from "../../parts/narrow";
import { Empty, Failed, Loading } from "../../parts/states";
import { Table } from "../../parts/table";
import { paramsOf, RANGES, type AuditFilter } from "./audit-filter";
import { AuditCard, AuditRow } from "./audit-row";

const REFRESH_MS = 30_000;
/** The number of records of a request. */
const PAGE = 100;
const COLUMNS = ["Time", "Who", "Action", "Object", "Outcome"];

const whoParam = param("who");
const rangeParam = param("range");
const fromParam = param("from");
const untilParam = param("until");

interface OlderPages {
  records: AuditRecord[];
  before: number | null;
}

export function Audit() {
  const filter: AuditFilter = {
    who: whoParam.value,
    range: rangeParam.value,
    from: fromParam.value,
    until: untilParam.value,
  };
  const zone = zoneShown();
  const filterKey = `audit ${zone} ${JSON.stringify(filter)}`;
  const older = useSignal<OlderPages | undefined>(undefined);
  const { busy, error: olderError, run } = useAttempt();
  useEffect(() => {
    older.value = undefined;
    olderError.value = undefined;
  }, [filterKey]);
  const load = (before?: number, signal?: AbortSignal) => {
    const page = before === undefined ? {} : { before };
    return api.audit({ ...paramsOf(filter, zone, now()), ...page, limit: PAGE }, signal);
  };
  const { data, error, reload } = useResource(filterKey, (signal) => load(undefined, signal), {
    // Older pages follow the first one, which is therefore not refreshed.
    everyMs: older.value === undefined ? REFRESH_MS : undefined,
    isKeptBetween: true,
  }).value;
  const before = older.value ? older.value.before : data?.before;
  const loadOlder = () =>
    run(async () => {
      const next = await load(before ?? undefined);
      older.value = { ...next, records: [...(older.value?.records ?? []), ...next.records] };
    });
  const records = [...(data?.records ?? []), ...(older.value?.records ?? [])];
  return (
    <section class="card section" aria-labelledby="audit-title">
      <div class="card-head audit-head">
        <h2 id="audit-title">Audit</h2>
        <Filter filter={filter} zone={zone} />
      </div>
      {data === undefined ? (
        error ? (
          <Failed message={`Cannot load the audit: ${error.message}`} onRetry={reload} />
        ) : (
          <Loading what="audit" />
        )
      ) : records.length === 0 ? (
        <Empty title="No records">
          <p>The log contains changes, logins and refused requests.</p>
        </Empty>
      ) : (
        <Records records={records} />
      )}
      {before != null && (
        <div class="card-foot">
          <button
            type="button"
            class="button small"
            disabled={busy.value}
            onClick={() => void loadOlder()}
          >
            Show older
          </button>
          <ErrorLine message={olderError.value} />
        </div>
      )}
    </section>
  );
}

function Records({ records }: { records: AuditRecord[] }) {
  if (narrow.value) {
    return (
      <ul class="access-cards">
        {records.map((record) => (
          <AuditCard key={record.seq} record={record} />
        ))}
      </ul>
    );
  }
  return (
    <Table label="Audit" class="access-table" columns={COLUMNS}>
      {records.map((record) => (
        <AuditRow key={record.seq} record={record} />
      ))}
    </Table>
  );
}

function Filter({ filter, zone }: { filter: AuditFilter; zone: string }) {
  const set = (name: keyof AuditFilter, value: string) =>
    setParams({ [name]: value }, { replace: true });
  const bound = (label: string, name: "from" | "until") => (
    <label class="field">
      {label}
      <input
        type="datetime-local"
        value={filter[name]}
        onChange={(event) => set(name, event.currentTarget.value)}
      />
    </label>
  );
  return (
    <div class="audit-filter" role="group" aria-label="Filter">
      <input
        type="search"
        aria-label="Who"
        placeholder="Name"
        value={filter.who}
        onChange={(event) => set("who", event.currentTarget.value)}
      />
      <select
        aria-label="Time"
        value={filter.range}
        onChange={(event) => set("range", event.currentTarget.value)}
      >
        {RANGES.map(({ value, label }) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
      {filter.range === "between" && (
        <>
          {bound("From", "from")}
          {bound("until", "until")}
          <span class="muted">{zoneName(zone, now())}</span>
        </>
      )}
    </div>
  );
}
