/** The resources of a host that run out: their forecasts in the head, and as charts. */
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { api, now } from "../../api/client";
import { useResource, type Resource } from "../../api/resource";
import { preferredZone } from "../../app/preferences";
import { Chart } from "../../chart/chart";
import { TimeFrame } from "../../chart/frame";
import { isFullSoon, untilFullText, type UntilFull } from "../../model/until-full";
import { matchersOf, resourcesQuery, untilFullOf } from "../../queries/until-full";
import { forecastChart, forecastChoice } from "./forecast-chart";

/** A forecast reads three weeks and changes slowly. */
const EVERY_MS = 10 * 60_000;
/** The charts are requested first. */
const FIRST_DELAY_MS = 1000;
/** The maximum number of resources in the head, and of charts. */
const SHOWN_MAX = 4;

export interface HostForecast {
  /** The time of the forecast. */
  at: number;
  /** The resources that run out first. */
  untilFull: UntilFull[];
}

/** The forecasts of a host's resources; without data until the charts are requested. */
export function useForecast(name: string): Resource<HostForecast> {
  const isStarted = useSignal(false);
  useEffect(() => {
    const timer = setTimeout(() => (isStarted.value = true), FIRST_DELAY_MS);
    return () => clearTimeout(timer);
  }, []);
  const load = async (signal: AbortSignal): Promise<HostForecast> => {
    if (!isStarted.value) return { at: now(), untilFull: [] };
    const { data } = await api.query(
      { query: resourcesQuery(matchersOf(new Map([["host", name]]))) },
      signal,
    );
    return { at: now(), untilFull: data ? untilFullOf(data).slice(0, SHOWN_MAX) : [] };
  };
  const key = `until full ${name} ${isStarted.value}`;
  return useResource(key, load, { everyMs: EVERY_MS, isKeptBetween: true }).value;
}

/** The forecasts in the head, as a fact of the host. */
export function ForecastFact({ forecast: { data, error } }: { forecast: Resource<HostForecast> }) {
  const untilFull = data?.untilFull ?? [];
  if (untilFull.length === 0 && !error) return null;
  return (
    <div>
      <dt>Forecast</dt>
      <dd>
        {untilFull.length === 0 && <span class="muted">unavailable: {error?.message}</span>}
        <ul class="host-forecast" aria-label="Forecast">
          {untilFull.map((until) => (
            <li key={until.mount ?? ""} class={isFullSoon(until) ? "num warn" : "num"}>
              {untilFullText(until)}
            </li>
          ))}
        </ul>
      </dd>
    </div>
  );
}

/** A chart of each resource: the last weeks, and the forecast with its band. */
export function ForecastCharts({ name, forecast }: { name: string; forecast: HostForecast }) {
  if (forecast.untilFull.length === 0) return null;
  return (
    <section aria-label="Forecast">
      <h2 class="section-title">Forecast</h2>
      <div class="charts">
        {forecast.untilFull.map((until) => (
          <ForecastChart
            key={`${until.mount ?? ""} ${forecast.at}`}
            name={name}
            at={forecast.at}
            until={until}
          />
        ))}
      </div>
    </section>
  );
}

function ForecastChart({ name, at, until }: { name: string; at: number; until: UntilFull }) {
  // This frame does not run: the next forecast has another one.
  const frame = useMemo(
    () => new TimeFrame({ choice: forecastChoice(until, at, preferredZone.peek()) }),
    [],
  );
  const chart = useMemo(() => forecastChart(name, until, at), []);
  return <Chart frame={frame} {...chart} />;
}
