/** A form to choose a series, a granularity and a time, which shows the stored document. */
import { address, setParams } from "../../app/address";
import { preferredZone } from "../../app/preferences";
import { api, now as daemonNow } from "../../api/client";
import { useResource } from "../../api/resource";
import type { FoundMetric, StorageAnswer } from "../../api/types";
import { Combobox } from "../../parts/combobox";
import { Empty, Failed, Loading } from "../../parts/states";
import { fieldValue, instantOfValue } from "../../model/field-time";
import { countText } from "../../model/words";
import { DocumentView } from "./document-view";
import { TagFields } from "./tag-fields";

const METRICS_MAX = 50;

/** The reader's choices; all of them are in the address. */
interface Choice {
  metric: string;
  tags: string;
  resolution: string;
  /** The time within the document; `undefined` means now. */
  time: number | undefined;
}

function choiceOf(params: URLSearchParams, storage: StorageAnswer): Choice {
  const names = storage.granularities.map(({ name }) => name);
  const asked = params.get("resolution") ?? "";
  const time = Number(params.get("time") ?? "");
  return {
    metric: params.get("metric") ?? "",
    tags: params.get("tags") ?? "",
    resolution: names.includes(asked) ? asked : (names[0] ?? ""),
    time: Number.isInteger(time) && time > 0 ? time : undefined,
  };
}

export function DocumentSearch({ storage }: { storage: StorageAnswer }) {
  const choice = choiceOf(address.value.params, storage);
  return (
    <section class="card section document-search" id="document">
      <div class="card-head">
        <h2>Stored document</h2>
      </div>
      <div class="document-search-form">
        <Combobox<FoundMetric>
          label="Metric"
          value={choice.metric}
          placeholder="Search a metric: cpu user, disk bytes…"
          noun="metrics"
          find={async (text, signal) => {
            const answer = await api.find({ q: text, limit: METRICS_MAX }, signal);
            return { total: answer.total, items: answer.metrics };
          }}
          keyOf={(item) => item.metric}
          render={(item) => <MetricOption item={item} />}
          onChoose={({ metric }) => setParams({ metric }, { replace: true })}
        />
        <div class="choices" role="group" aria-label="Granularity">
          {storage.granularities.map(({ name }) => (
            <button
              key={name}
              type="button"
              aria-pressed={name === choice.resolution}
              onClick={() => setParams({ resolution: name }, { replace: true })}
            >
              {name}
            </button>
          ))}
        </div>
        <TimeChoice time={choice.time} />
      </div>
      {choice.metric === "" ? (
        <Empty title="Choose a metric">
          <p>Its stored document is shown here, nested and byte by byte.</p>
        </Empty>
      ) : (
        <SeriesChoice key={choice.metric} choice={choice} />
      )}
    </section>
  );
}

function MetricOption({ item }: { item: FoundMetric }) {
  const about = [item.kind, item.unit, `${countText(item.series)} series`];
  return (
    <span class="found-metric">
      <span class="name mono">{item.metric}</span>
      <span class="about num">{about.filter(Boolean).join(" · ")}</span>
    </span>
  );
}

function TimeChoice({ time }: { time: number | undefined }) {
  const zone = preferredZone.value;
  const show = (at: number | undefined) =>
    setParams({ time: at === undefined ? undefined : String(at) }, { replace: true });
  return (
    <div class="document-search-time">
      <button
        type="button"
        class="button"
        aria-pressed={time === undefined}
        onClick={() => show(undefined)}
      >
        Now
      </button>
      <label class="field">
        <span class="hidden-text">Time, {zone}</span>
        <input
          type="datetime-local"
          value={fieldValue(zone, time ?? daemonNow())}
          title={`Time zone: ${zone}`}
          onChange={(event) => {
            const at = instantOfValue(zone, event.currentTarget.value);
            if (at !== undefined) show(at);
          }}
        />
      </label>
    </div>
  );
}

/** Asks for tags until one series remains, then shows its document. */
function SeriesChoice({ choice }: { choice: Choice }) {
  const { metric, tags } = choice;
  const facets = useResource(
    `${metric}\n${tags}`,
    async (signal) => ({ asked: tags, ...(await api.facets({ metric, tags }, signal)) }),
    { isKeptBetween: true },
  ).value;
  // The previous answer is for other tags: its count is not valid here.
  const count = facets.data?.asked === tags ? facets.data.series : undefined;
  return (
    <>
      <TagFields metric={metric} tags={tags} facets={facets.data?.tags ?? []} />
      {facets.error ? (
        <Failed message={facets.error.message} />
      ) : count === undefined ? (
        <Loading />
      ) : count === 0 ? (
        <Empty title="No matching series">
          <p>
            No series of <code>{metric}</code> has these tags.
          </p>
          <button
            type="button"
            class="button"
            onClick={() => setParams({ tags: undefined }, { replace: true })}
          >
            Clear tags
          </button>
        </Empty>
      ) : count > 1 ? (
        <Empty title={`${count.toLocaleString("en")} series match`}>
          <p>A document belongs to one series: choose more tags above.</p>
        </Empty>
      ) : (
        <ChosenDocument choice={choice} />
      )}
    </>
  );
}

function ChosenDocument({ choice }: { choice: Choice }) {
  const { metric, tags, resolution, time } = choice;
  const key = [metric, tags, resolution, time ?? "now"].join("\n");
  const found = useResource(
    key,
    (signal) => api.storedDocument({ metric, tags, resolution, time: time ?? daemonNow() }, signal),
    { everyMs: time === undefined ? 10_000 : undefined, isKeptBetween: true },
  ).value;
  // During an outage, the previous document stays; the page shows a banner.
  if (found.error && (found.error.status !== 0 || !found.data)) {
    return <Failed message={found.error.message} />;
  }
  if (!found.data) return <Loading what="the document" />;
  return <DocumentView answer={found.data} isLoading={found.loading} />;
}
