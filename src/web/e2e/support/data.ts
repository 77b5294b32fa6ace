/** The data that tests expect, generated so that each value is known. */
import type { Daemon, Ping, Sample } from "./daemon";
import { DAY, HOUR, lastChange, MINUTE, ZONES } from "./zones";

/** A name that would run as a script if it were not shown as text. */
export const HOSTILE = [
  "<img src=x onerror=window.hacked=1>",
  '"><script>window.hacked=1</script>',
] as const;

/** Returns the last full minute. */
export const currentMinute = () => Math.floor(Date.now() / MINUTE) * MINUTE;

/**
 * The last full minute at the start of the worker, which is the time of the data that tests share.
 * It may be minutes old: data about the last minutes uses `currentMinute`.
 */
export const NOW = currentMinute();

/** The host whose values are known for each minute of the last three hours. */
export const HOST = "web1";
/** The time range in which the host's load has no samples. */
export const GAP = { from: NOW - 100 * MINUTE, to: NOW - 80 * MINUTE };
/** The time range in which the host's load is zero. */
export const ZEROS = { from: NOW - 60 * MINUTE, to: NOW - 50 * MINUTE };

function* minutes(from: number, to: number): Generator<number> {
  for (let at = from; at < to; at += MINUTE) yield at;
}

/** Returns a slow wave between 0 and 1, different for each `shift`; the same in every run. */
function wave(at: number, shift: number): number {
  return (1 + Math.sin((at - NOW) / (23 * MINUTE) + shift)) / 2;
}

const STATES = { user: 0.5, kernel: 0.2, iowait: 0.05, nice: 0.01, irq: 0.01, softirq: 0.02 };

/** Returns the samples that an agent would have sent for a host over the hours before `now`. */
export function hostSamples(
  host: string,
  hours: number,
  shift: number,
  now = currentMinute(),
): Sample[] {
  const samples: Sample[] = [];
  const busy: Record<string, number> = { idle: 0, steal: 0 };
  let [received, sent] = [0, 0];
  for (const time of minutes(now - hours * HOUR, now)) {
    const gauge = (metric: string, unit: string, value: number, tags = {}) =>
      samples.push({ metric, tags: { host, ...tags }, unit, time, value });
    const counter = (metric: string, unit: string, value: number, tags = {}) =>
      samples.push({ metric, tags: { host, ...tags }, kind: "counter", unit, time, value });
    let idle = 120;
    for (const [state, share] of Object.entries(STATES)) {
      const seconds = 120 * share * wave(time, shift);
      idle -= seconds;
      busy[state] = (busy[state] ?? 0) + seconds;
      counter(`system_cpu_${state}`, "seconds", busy[state]);
    }
    busy["idle"] = (busy["idle"] ?? 0) + idle;
    counter("system_cpu_idle", "seconds", busy["idle"]);
    counter("system_cpu_steal", "seconds", 0);
    const used = (2 + 3 * wave(time, shift + 1)) * 2 ** 30;
    gauge("system_memory_total", "bytes", 8 * 2 ** 30);
    gauge("system_memory_used", "bytes", used);
    gauge("system_memory_free", "bytes", 8 * 2 ** 30 - used - 2 ** 30);
    gauge("system_memory_cached", "bytes", 2 ** 30);
    gauge("system_memory_available", "bytes", 8 * 2 ** 30 - used);
    received += 60 * 1e6 * wave(time, shift + 2);
    sent += 60 * 4e5 * wave(time, shift + 3);
    counter("system_network_bytes_in", "bytes", received, { interface: "eth0" });
    counter("system_network_bytes_out", "bytes", sent, { interface: "eth0" });
    if (host === HOST && time >= GAP.from && time < GAP.to) continue;
    const isZero = host === HOST && time >= ZEROS.from && time < ZEROS.to;
    ["1m", "5m", "15m"].forEach((span, k) => {
      gauge(`system_load_${span}`, "", isZero ? 0 : 0.25 + 2 * wave(time, shift - k / 4));
    });
  }
  return samples;
}

/** Returns a ping that an agent of this host would send now. */
export function ping(host: string, changes: Partial<Ping> = {}): Ping {
  return {
    agent: host,
    host,
    program: "granary-agent-host",
    version: "0.1.0",
    started: NOW - 5 * DAY,
    booted: NOW - 30 * DAY,
    interval_ms: 10_000,
    sent: Date.now(),
    tags: { env: "prod" },
    ...changes,
  };
}

/**
 * The host whose load and ticks are known for each half hour around each zone's last change of
 * clocks.
 */
export const CLOCKS = "clocks";

function clockSamples(): Sample[] {
  const times = new Set<number>();
  for (const zone of ZONES) {
    const change = lastChange(zone, 4);
    for (let time = change - 3 * DAY; time < change + 3 * DAY; time += HOUR / 2) times.add(time);
  }
  const tags = { host: CLOCKS };
  return [...times].sort().flatMap((time) => [
    { metric: "system_load_1m", tags, time, value: 1 + wave(time, 0) },
    { metric: "clock_ticks", tags, kind: "delta" as const, time, value: 1 },
  ]);
}

/** Returns samples with malicious names of hosts, metrics and tags. */
function hostileSamples(): Sample[] {
  const samples: Sample[] = [];
  for (const name of HOSTILE) {
    for (const time of minutes(NOW - HOUR, NOW)) {
      samples.push({ metric: "system_load_1m", tags: { host: name }, time, value: wave(time, 1) });
      samples.push({ metric: name, tags: { host: HOST, [name]: name }, time, value: 1 });
    }
  }
  return samples;
}

/** Sends a daemon the data that the tests expect. */
export async function postTestData(daemon: Daemon): Promise<void> {
  await daemon.postSamples(hostSamples(HOST, 3, 0, NOW));
  await daemon.postSamples(hostSamples("web2", 3, 2, NOW));
  await daemon.postSamples(clockSamples());
  await daemon.postSamples(hostileSamples());
  await daemon.postPings([HOST, "web2", CLOCKS, ...HOSTILE].map((host) => ping(host)));
}
