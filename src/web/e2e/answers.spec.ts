/** The types of src/api/types have the same fields as a real daemon's answers. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ApiError } from "../src/api/client";
import type { ChartParams } from "../src/api/client";
import type { Dashboard } from "../src/api/types";
import { ACCESS, addUser, firstLink, PASSWORD, totpCode } from "./support/access";
import { freePort, type Daemon } from "./support/daemon";
import { HOST, hostSamples, NOW, ping } from "./support/data";
import { eventually } from "./support/eventually";
import { expect, test } from "./support/test";
import { typeFaults, recordingApi } from "./support/typed";
import { HOUR, MINUTE } from "./support/zones";

const RULES = `groups:
- name: all
  interval: 1s
  rules:
  - record: host:load:last
    expr: last_over_time(system_load_1m[3h])
  - alert: LoadHigh
    expr: last_over_time(system_load_1m{host="${HOST}"}[3h]) >= 0
    annotations: {summary: "Load of {{ $labels.host }}"}
  - alert: Pulse
    expr: pulse > 0
    keep_firing_for: 1h
  - alert: Silent
    expr: never_sent > 0
    no_data: alerting
  - alert: Failing
    expr: last_over_time(system_cpu_user[3h]) * on (none) {__name__=~"system_load_.*"} < 0
`;
/** A receiver that gets notifications on a port, and does not get them on another. */
const receivers = (port: number) => `route: {receiver: duty, group_wait: 0s}
receivers:
- name: duty
  webhook_configs: [{url: 'http://127.0.0.1:9/'}, {url: 'http://127.0.0.1:${port}/'}]
`;
const SETTINGS =
  "[storage]\ncheckpoint_interval = '1s'\ndisk_max = '90%'\n\
[[retention.rule]]\nname = 'load'\nselector = 'system_load_5m'\nkeep = { 1m = '12h' }\n";

const DASHBOARD: Dashboard = {
  schema: 1,
  title: "All there is",
  folder: "Hosts",
  range: "1h",
  resolution: "1m",
  variables: [{ name: "host", tag: "host", metric: "system_load_1m", multi: true }],
  panels: [
    {
      kind: "chart",
      id: "a",
      title: "Load",
      ...{ x: 0, y: 0, w: 6, h: 6 },
      display: "avg",
      stacked: false,
      log: true,
      unit: "percent",
      queries: [
        { kind: "metric", metric: "m", tags: "", group_by: "host", merge: true, hidden: true },
        { kind: "metric", metric: "m", tags: "host=a", top: 3 },
        { kind: "metric", metric: "m", tags: "host=a", bottom: 3 },
        { kind: "promql", expression: "up", legend: "{{host}}", hidden: true },
      ],
    },
    {
      ...{ kind: "text", id: "b", title: "Words", x: 6, y: 0, w: 6, h: 6 },
      ...{ text: "*words*", link: "hosts" },
    },
    { kind: "row", id: "c", title: "Each host", x: 0, y: 6, w: 12, h: 1, folded: true },
    {
      kind: "gauge",
      id: "d",
      title: "Load now",
      ...{ x: 0, y: 7, w: 6, h: 6 },
      repeat: "host",
      link: "hosts",
      reduce: "avg",
      min: 0,
      max: 8,
      thresholds: [{ level: "good" }, { from: 4, level: "warn" }],
      queries: [{ kind: "metric", metric: "m", tags: "" }],
    },
  ],
};

const values: Parameters<typeof recordingApi>[0] = new Map();
const api = recordingApi(values);
/** Requests and answers of a daemon without receivers: its status has a warning. */
const valuesWithWarnings: typeof values = new Map();

test("answers have exactly the fields that the page's types declare", async ({ startDaemon }) => {
  test.setTimeout(5 * MINUTE);
  const port = await freePort();
  const receiver = createServer((_, answer) => answer.end()).listen(port, "127.0.0.1");
  const files = await mkdtemp(join(tmpdir(), "granary-answers-"));
  await writeFile(join(files, "fixed.json"), JSON.stringify(DASHBOARD));
  await writeFile(join(files, "faulty.json"), "{");
  const daemon = await startDaemon({
    "rules.yml": RULES,
    "receivers.yml": receivers(port),
    "granary.toml": `[server]\ndashboards_dir = '${files}'\n${SETTINGS}`,
  });
  await daemon.postSamples(hostSamples(HOST, 1, 0));
  const disk = { metric: "disk_partition_space_percent_used", time: NOW - MINUTE, value: 7 };
  await daemon.postSamples([{ ...disk, tags: { host: HOST, mount: "/" } }]);
  await daemon.postSamples([{ metric: "pulse", tags: {}, time: Date.now(), value: 1 }]);
  const exported = await fetch(`${daemon.url}/v1/metrics`, {
    method: "POST",
    headers: { "content-type": "application/x-protobuf" },
    body: new Uint8Array(histogramExport("latency", NOW)),
  });
  expect(exported.status).toBe(200);
  await daemon.postPings([ping(HOST), ping("gone", { sent: NOW - HOUR })]);
  const daemonWithoutReceivers = await startDaemon();
  const closedDaemon = await startDaemon(ACCESS);
  await addUser(closedDaemon, "root", { "*": "admin" });
  const realFetch = globalThis.fetch;
  let target = daemon;
  let cookie = "";
  globalThis.fetch = async (path, init) => {
    const headers = new Headers(init?.headers);
    if (cookie !== "") headers.set("cookie", cookie);
    const answer = await realFetch(new URL(path as string, target.url), { ...init, headers });
    cookie = answer.headers.getSetCookie()[0]?.split(";")[0] ?? cookie;
    return answer;
  };
  try {
    await requestSeries();
    await requestObjects();
    await requestAlerts(daemon);
    await requestStorage();
    await requestAccess();
    await requestErrors(daemon);
    target = daemonWithoutReceivers;
    await requestTexts(daemonWithoutReceivers);
    target = closedDaemon;
    await requestUsers(await firstLink(closedDaemon));
    cookie = "";
    target = daemonWithoutReceivers;
    await eventually("the status has a warning", async () => {
      return (await recordingApi(valuesWithWarnings).status()).health.warnings.length > 0;
    });
  } finally {
    globalThis.fetch = realFetch;
    receiver.close();
    await rm(files, { recursive: true });
  }
  const names = [...values.keys()].map((key) => key.split(" ")[0] ?? "");
  expect(Object.keys(api).filter((name) => !names.includes(name))).toEqual([]);
  expect(typeFaults([...values.values(), ...valuesWithWarnings.values()])).toEqual([]);
});

/** An OpenTelemetry export of an exponential histogram with three observations in one bucket. */
function histogramExport(metric: string, time: number): Buffer {
  const field = (number: number, bytes: Buffer) =>
    Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);
  const fixed = (number: number, value: bigint) => {
    const bytes = Buffer.alloc(9, (number << 3) | 1);
    bytes.writeBigUInt64LE(value, 1);
    return bytes;
  };
  const buckets = field(8, field(2, Buffer.from([3])));
  const point = [fixed(3, BigInt(time) * 1_000_000n), fixed(4, 3n), buckets];
  const cumulative = Buffer.from([2 << 3, 2]);
  const histogram = Buffer.concat([field(1, Buffer.concat(point)), cumulative]);
  const described = Buffer.concat([field(1, Buffer.from(metric)), field(10, histogram)]);
  return field(1, field(2, field(2, described)));
}

async function requestSeries() {
  const range = { start: NOW - HOUR, end: NOW + MINUTE };
  const slots: ChartParams = { resolution: "1m", ...range };
  const params: ChartParams = { metric: "system_load_1m", ...slots };
  await api.chart({ ...params, points: 10 });
  await api.chart({ ...params, resolution: "day", tz: "Europe/Berlin" });
  await api.chart({ ...params, metric: "latency", display: "distribution,p99" });
  const ranked = { merge: true, group_by: "host", top: 1, by: "avg" };
  await api.chart({ ...params, tags: `host=${HOST}`, display: "avg,max", ...ranked });
  await api.chart({ ...slots, metrics: "system_load_1m,system_load_5m", bottom: 1 });
  await api.moved({ tags: `host=${HOST}`, start: NOW - 10 * MINUTE, end: NOW + MINUTE });
  await api.series({ metric: "system_load_1m", tags: `host=${HOST}` });
  await api.find({ q: "load", limit: 5 });
  await api.facets({ metric: "system_load_1m", tags: `host=${HOST}` });
  await api.facets({ metric: "system_lod_1m" });
  const { version } = await api.hosts({ host: HOST });
  await api.hosts({ since: version });
  await api.hosts();
  await api.sparklines();
  await api.removeHost("gone");
  const [start, end] = [range.start / 1000, range.end / 1000];
  await api.queryRange({ query: "rate(system_load_1m[5m])", start, end, step: 60 });
  await api.queryRange({ query: "latency", start, end, step: 60 });
  await api.query({ query: "latency", time: NOW / 1000 });
  await api.formatQuery("up  +1");
  await api.query({ query: "quantile(2, system_load_1m)", time: end });
}

async function requestObjects() {
  const { version } = await api.saveDashboard("all", null, DASHBOARD);
  await api.dashboards();
  await api.dashboard("all");
  await api.dashboard("fixed");
  await api.deleteDashboard("all", version);
  const { id } = await api.annotate({ time: NOW, end: NOW + 1, text: "x", tags: { host: HOST } });
  await api.annotations({ start: NOW - HOUR, end: NOW + HOUR, tags: `host=${HOST}` });
  await api.deleteAnnotation(id);
}

async function requestAlerts(daemon: Daemon) {
  const states = async () =>
    (await api.rules()).data.groups
      .flatMap(({ rules }) => rules)
      .map((rule) => (rule.type === "alerting" && rule.alerts?.length ? rule.state : rule.health));
  await expect.poll(states).toEqual(["ok", "firing", "firing", "firing", "err"]);
  await eventually("alerts are delivered and pending", async () => {
    const text = JSON.stringify(await api.rules());
    return text.includes('"pendingSince":') && text.includes('"at":');
  });
  await daemon.postSamples([{ metric: "pulse", tags: {}, time: Date.now(), value: 0 }]);
  const labels = { alertname: "LoadHigh", host: HOST };
  await api.acknowledge(labels, "Ann", "looking", NOW + HOUR);
  const silence = {
    matchers: [{ name: "alertname", value: "LoadHigh", isRegex: false, isEqual: true }],
    startsAt: new Date(NOW).toISOString(),
    createdBy: "Ann",
    comment: "upgrade",
  };
  const window = { weekdays: ["sat"], from: "07:30", until: "08:30", zone: "Europe/Berlin" };
  const endsAt = new Date(NOW + HOUR * 24 * 30).toISOString();
  const first = await api.silence({ ...silence, endsAt, recurring: null });
  const next = { ...silence, id: first.silenceID, endsAt, recurring: null };
  const { silenceID } = await api.silence(next);
  await api.silence({ ...silence, endsAt, recurring: window });
  await eventually("the complete alert is reported", async () => {
    const text = JSON.stringify(await api.rules());
    return ["keepFiringSince", "silencedBy", "acknowledged"].every((name) => text.includes(name));
  });
  await api.silences();
  await api.expireSilence(silenceID);
  const { file = "" } = (await api.alertingRules()).data.groups[0] ?? {};
  await api.alertHistory({ rule: "LoadHigh", group: "all", file, limit: 5 });
  await api.withdrawAcknowledgement(labels);
  await api.checkRules(RULES);
  await api.receivers();
  await api.testReceiver("duty");
}

/** Texts of rules and receivers, on a daemon whose receivers are not in a file. */
async function requestTexts(daemon: Daemon) {
  const faulty = "groups:\n- name: shop\n  rules:\n  - alert: A\n    expr: rate(\n";
  await api.checkRuleText("shop", faulty);
  const rules = await api.saveRuleText("shop", null, RULES.replaceAll("all", "shop"));
  await api.ruleText("shop");
  await api.checkReceivers("route: {}");
  const saved = await api.saveReceivers(null, receivers(9));
  await api.ruleFiles();
  await api.receiversText();
  await api.deleteReceivers(saved.version);
  await api.deleteRuleText("shop", rules.version);
  await writeFile(join(daemon.folder, "rules.yml"), faulty);
  await fetch("/-/reload", { method: "POST" });
  await api.ruleFiles();
}

async function requestStorage() {
  await eventually("a checkpoint was made", async () => {
    const { checkpoints, granularities } = await api.storage();
    return checkpoints.length > 0 && granularities.some(({ partitions }) => partitions.length > 0);
  });
  const document = { metric: "system_load_1m", tags: `host=${HOST}` };
  const isStored = async () => {
    const old = await api.storedDocument({ ...document, resolution: "1m", time: NOW - HOUR });
    const open = await api.storedDocument({ ...document, resolution: "1h", time: NOW - MINUTE });
    return old.document !== null && open.head.length > 0;
  };
  // A document is written two minutes after its hour.
  await eventually("a document is in a file, and a cell in the head", isStored, 3 * MINUTE);
}

async function requestAccess() {
  const expires = NOW + 30 * 24 * HOUR;
  const { key } = await api.addKey({ name: "web1", scopes: ["ingest"], senders: "web1", expires });
  await api.rotateKey(key.id, HOUR);
  await api.keys();
  await api.revokeKey(key.id);
  const { code } = await api.addCode({ senders: "web1", valid_ms: HOUR });
  await api.codes();
  await api.revokeCode(code.id);
}

async function requestUsers(link: URL) {
  await api.accept(link.hash.replace("#code=", ""), "first", "another horse battery");
  await api.login({ user: "root", password: PASSWORD, code: "123456" });
  await api.caller();
  await api.provider();
  const password = "another horse battery";
  const roles = { default: "viewer" } as const;
  await api.addUser({ name: "ann", password, roles });
  await api.changeUser("ann", {
    password: PASSWORD,
    roles,
    disabled: true,
    totp: false,
    logout: true,
  });
  await api.users();
  await api.removeUser("ann");
  await api.changePassword(PASSWORD, password);
  const { secret } = await api.beginTotp(password);
  await api.confirmTotp(totpCode(secret));
  await api.removeTotp(password);
  const { records } = await api.audit({
    who: "root",
    since: 0,
    until: Date.now() + HOUR,
    limit: 3,
  });
  await api.audit({ before: records.at(-1)?.seq ?? 0, limit: 1 });
  const logIn = () => api.login({ user: "root", password, code: "123456" });
  const { sessions } = await api.sessions();
  await api.endSession(sessions[0]?.id ?? "");
  await logIn();
  await api.endAllSessions();
  await logIn();
  await api.logout();
}

async function requestErrors(daemon: Daemon) {
  const recordError = async (type: string, call: Promise<unknown>) => {
    const fault = await call.then(
      () => undefined,
      (cause: unknown) => cause,
    );
    if (!(fault instanceof ApiError)) throw new Error("the request did not fail");
    values.set(type, { type, value: fault.body });
  };
  await recordError("t.ErrorAnswer", api.dashboard("none"));
  await recordError("t.PromqlAnswer<never>", api.query({ query: "rate(" }));
  const late = { metric: "late", tags: {}, time: 0, value: 1 };
  await daemon.postSamples([late]).catch(() => undefined);
  await eventually("the status has a refused sample", async () => {
    await api.cardinality({ limit: 5 });
    const { refused, commits } = await api.status();
    return refused.some(({ examples }) => examples.length > 0) && commits.count > 0;
  });
}
