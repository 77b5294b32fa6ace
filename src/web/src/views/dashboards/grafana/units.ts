/** Grafana's units in our words. */

const UNITS: Record<string, string> = {
  none: "",
  short: "",
  string: "",
  bool: "",
  bool_yes_no: "",
  bool_on_off: "",
  percent: "percent",
  percentunit: "ratio",
  bytes: "bytes",
  decbytes: "bytes",
  bits: "bits",
  decbits: "bits",
  Bps: "bytes/s",
  binBps: "bytes/s",
  bps: "bits/s",
  binbps: "bits/s",
  s: "seconds",
  ms: "ms",
  µs: "µs",
  ns: "ns",
  m: "min",
  h: "h",
  d: "days",
  ops: "ops/s",
  reqps: "requests/s",
  rps: "reads/s",
  wps: "writes/s",
  iops: "io/s",
  eps: "events/s",
  pps: "packets/s",
  mps: "messages/s",
  cps: "counts/s",
  opm: "ops/min",
  rpm: "reads/min",
  hertz: "Hz",
  rothz: "Hz",
  rotrpm: "rpm",
  celsius: "°C",
  fahrenheit: "°F",
  volt: "V",
  amp: "A",
  watt: "W",
  joule: "J",
};

/** Our unit for a unit of Grafana; other texts stay. */
export function unitWord(unit: string): string {
  return Object.hasOwn(UNITS, unit) ? (UNITS[unit] ?? "") : unit.slice(0, UNIT_CHARS_MAX);
}

const UNIT_CHARS_MAX = 16;
