/**
 * The page's client of the daemon. Answers are typed in `types.ts`.
 *
 * A separate signal reports whether the daemon answers, so that the whole page can show it.
 */
import { signal } from "@preact/signals";
import { key, withKey } from "./key";
import { caller, noteCaller, noteRefusal } from "./session";
import type * as t from "./types";

/** A request that failed. */
export class ApiError extends Error {
  constructor(
    /** The HTTP status; 0 without an answer. */
    readonly status: number,
    /** The daemon's error code, such as `invalid`, `conflict`, `busy`. */
    readonly code: string,
    message: string,
    /** The whole answer, if it was JSON. */
    readonly body?: unknown,
  ) {
    super(message);
  }
}

/** The time since which the daemon does not answer; `null` while it does. */
export const awaySince = signal<number | null>(null);

/** The lead of the daemon's clock over the browser's, in milliseconds. */
export const clockLead = signal(0);

export type Params = Record<string, string | number | boolean | undefined>;

function queryString(params: Params): string {
  const pairs = Object.entries(params).filter(([, value]) => value !== undefined && value !== "");
  const search = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)]));
  return search.size > 0 ? `?${search.toString()}` : "";
}

/** The forms of error answers. */
type ErrorBody = t.ErrorAnswer & { errorType: string };

/** The number of requests that wait for an answer. */
let pendingRequests = 0;
/** The time of the daemon's last answer, by `performance.now()`. */
let answeredAt = 0;

/** Sends a request; a change of a logged-in person carries the token of the session. */
async function request<T>(path: string, init: RequestInit): Promise<T> {
  const isChange = init.method !== undefined && init.method !== "GET";
  if (!isChange || key.value !== "" || BEGINNINGS.includes(path)) {
    return requestOnce<T>(path, init);
  }
  const token = (caller.peek() ?? (await loadCaller())).csrf;
  try {
    return await requestOnce<T>(path, withCsrf(init, token));
  } catch (cause) {
    // The session changed in another tab.
    if (!(cause instanceof ApiError && cause.code === "csrf")) throw cause;
    return await requestOnce<T>(path, withCsrf(init, (await loadCaller()).csrf));
  }
}

/** The changes that begin a session. */
const LOGIN = "/api/v1/access/login";
const ACCEPT = "/api/v1/access/accept";
const BEGINNINGS: readonly string[] = [LOGIN, ACCEPT];

function withCsrf(init: RequestInit, token: string | null): RequestInit {
  if (token === null) return init;
  const headers = new Headers(init.headers);
  headers.set("x-granary-csrf", token);
  return { ...init, headers };
}

let loadingCaller: Promise<t.CallerAnswer> | undefined;

/** Requests the caller's identity and rights; one request at a time. */
export function loadCaller(): Promise<t.CallerAnswer> {
  loadingCaller ??= api
    .caller()
    .then((answer) => {
      noteCaller(answer);
      return answer;
    })
    .finally(() => (loadingCaller = undefined));
  return loadingCaller;
}

async function requestOnce<T>(path: string, init: RequestInit): Promise<T> {
  const answer = await fetchAnswer(path, init);
  const text = await answer.text().catch((cause: unknown) => {
    if (init.signal?.aborted) throw cause;
    throw markAway();
  });
  const isJson = isDaemonAnswer(answer);
  const body: unknown = isJson && text !== "" ? JSON.parse(text) : undefined;
  if (!answer.ok) {
    // Alertmanager's API answers errors with a plain text.
    const error = (typeof body === "string" ? { message: body } : body) as
      Partial<ErrorBody> | undefined;
    const message = error?.message ?? error?.error ?? `${answer.status} ${answer.statusText}`;
    const code = error?.errorType ?? error?.error ?? "failed";
    noteRefusal(code, message);
    throw new ApiError(answer.status, code, message, body);
  }
  return body as T;
}

async function fetchAnswer(path: string, init: RequestInit): Promise<Response> {
  pendingRequests += 1;
  try {
    const headers = withKey(init.headers);
    const answer = await fetch(path, { credentials: "same-origin", ...init, headers });
    // A proxy answers for a daemon that it cannot reach.
    if ([502, 503, 504].includes(answer.status) && !isDaemonAnswer(answer)) throw markAway();
    awaySince.value = null;
    answeredAt = performance.now();
    updateClockLead(answer);
    return answer;
  } catch (cause) {
    if (cause instanceof ApiError || init.signal?.aborted) throw cause;
    throw markAway();
  } finally {
    pendingRequests -= 1;
  }
}

function isDaemonAnswer(answer: Response): boolean {
  return answer.headers.get("content-type")?.includes("json") ?? false;
}

function markAway(): ApiError {
  awaySince.value ??= Date.now();
  return new ApiError(0, "away", "the daemon does not answer");
}

function updateClockLead(answer: Response) {
  const date = Date.parse(answer.headers.get("date") ?? "");
  // The header has a resolution of seconds: a difference below two seconds is noise.
  if (!Number.isNaN(date)) {
    const lead = date + 500 - Date.now();
    clockLead.value = Math.abs(lead) < 2000 ? 0 : Math.round(lead / 1000) * 1000;
  }
}

/** The daemon's time, approximately. */
export function now(): number {
  return Date.now() + clockLead.value;
}

function get<T>(path: string, params: Params = {}, signal?: AbortSignal): Promise<T> {
  return request<T>(path + queryString(params), signal ? { signal } : {});
}

function send<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const init: RequestInit = signal ? { method, signal } : { method };
  if (body !== undefined) {
    init.headers = { "content-type": "application/json" };
    init.body = JSON.stringify(body);
  }
  return request<T>(path, init);
}

/** Parameters of a chart request. */
export interface ChartParams {
  /** A name, or several names separated by commas. */
  metric?: string;
  metrics?: string;
  tags?: string;
  resolution: string;
  start: number;
  end: number;
  display?: string;
  tz?: string;
  points?: number;
  merge?: boolean;
  group_by?: string;
  top?: number;
  bottom?: number;
  /** The number that `top` and `bottom` compare. */
  by?: string;
}

const encoded = encodeURIComponent;

export const api = {
  chart: (params: ChartParams, signal?: AbortSignal) =>
    get<t.ChartAnswer>("/api/v1/chart", { ...params }, signal),
  series: (params: { metric?: string; tags?: string }, signal?: AbortSignal) =>
    get<t.SeriesAnswer>("/api/v1/series", params, signal),
  moved: (
    params: { metric?: string; tags?: string; start: number; end: number; top?: number },
    signal?: AbortSignal,
  ) => get<t.MovedAnswer>("/api/v1/moved", params, signal),
  find: (params: { q: string; limit?: number }, signal?: AbortSignal) =>
    get<t.FindAnswer>("/api/v1/find", params, signal),
  facets: (params: { metric: string; tags?: string }, signal?: AbortSignal) =>
    get<t.FacetsAnswer>("/api/v1/facets", params, signal),
  queryRange: (
    params: { query: string; start: number; end: number; step: number },
    signal?: AbortSignal,
  ) => get<t.PromqlAnswer<t.PromqlMatrix>>("/api/v1/query_range", params, signal),
  query: (params: { query: string; time?: number }, signal?: AbortSignal) =>
    get<t.PromqlAnswer<t.PromqlVector>>("/api/v1/query", params, signal),
  formatQuery: (query: string, signal?: AbortSignal) =>
    get<t.PromqlAnswer<string>>("/api/v1/format_query", { query }, signal),
  hosts: (params: { host?: string; since?: string } = {}, signal?: AbortSignal) =>
    get<t.HostsAnswer>("/api/v1/hosts", params, signal),
  sparklines: (signal?: AbortSignal) =>
    get<t.SparklinesAnswer>("/api/v1/hosts/sparklines", {}, signal),
  removeHost: (host: string) => send<unknown>("DELETE", `/api/v1/hosts?host=${encoded(host)}`),
  dashboards: (signal?: AbortSignal) => get<t.DashboardsAnswer>("/api/v1/dashboards", {}, signal),
  dashboard: (which: string, signal?: AbortSignal) =>
    get<t.DashboardAnswer>(`/api/v1/dashboards/${encoded(which)}`, {}, signal),
  saveDashboard: (which: string, version: number | null, dashboard: t.Dashboard) =>
    send<t.DashboardSaved>("PUT", `/api/v1/dashboards/${encoded(which)}`, { version, dashboard }),
  deleteDashboard: (which: string, version: number) =>
    send<unknown>("DELETE", `/api/v1/dashboards/${encoded(which)}?version=${version}`),
  annotations: (params: { start: number; end: number; tags?: string }, signal?: AbortSignal) =>
    get<t.AnnotationsAnswer>("/api/v1/annotations", params, signal),
  annotate: (annotation: t.NewAnnotation) =>
    send<{ id: string }>("POST", "/api/v1/annotations", annotation),
  deleteAnnotation: (id: string) => send<unknown>("DELETE", `/api/v1/annotations/${encoded(id)}`),
  storage: (signal?: AbortSignal) => get<t.StorageAnswer>("/api/v1/storage", {}, signal),
  storedDocument: (
    params: { metric: string; tags: string; resolution: string; time: number },
    signal?: AbortSignal,
  ) => get<t.StoredDocumentAnswer>("/api/v1/storage/document", params, signal),
  alertingRules: (signal?: AbortSignal) =>
    get<t.RulesAnswer>("/api/v1/rules", { type: "alert", exclude_alerts: true }, signal),
  rules: (signal?: AbortSignal) => get<t.RulesAnswer>("/api/v1/rules", {}, signal),
  alertHistory: (
    params: { rule: string; group: string; file: string; limit: number },
    signal?: AbortSignal,
  ) => get<t.AlertHistoryAnswer>("/api/v1/alerts/history", params, signal),
  checkRules: (text: string, signal?: AbortSignal) =>
    request<t.CheckedRules>("/api/v1/rules/check", {
      method: "POST",
      body: new URLSearchParams({ rules: text }),
      ...(signal ? { signal } : {}),
    }),
  ruleFiles: (signal?: AbortSignal) => get<t.RuleFilesAnswer>("/api/v1/rule-files", {}, signal),
  ruleText: (name: string, signal?: AbortSignal) =>
    get<t.RuleText>(`/api/v1/rule-files/${encoded(name)}`, {}, signal),
  saveRuleText: (name: string, version: number | null, text: string) =>
    send<t.SavedRuleText>("PUT", `/api/v1/rule-files/${encoded(name)}`, { version, text }),
  deleteRuleText: (name: string, version?: number) =>
    send<unknown>("DELETE", `/api/v1/rule-files/${encoded(name)}${queryString({ version })}`),
  checkRuleText: (name: string, text: string, signal?: AbortSignal) =>
    send<t.CheckedRuleText>("POST", "/api/v1/rule-files/check", { name, text }, signal),
  receiversText: (signal?: AbortSignal) =>
    get<t.ReceiversText>("/api/v1/notifications", {}, signal),
  saveReceivers: (version: number | null, text: string) =>
    send<t.SavedReceivers>("PUT", "/api/v1/notifications", { version, text }),
  deleteReceivers: (version?: number) =>
    send<unknown>("DELETE", `/api/v1/notifications${queryString({ version })}`),
  checkReceivers: (text: string, signal?: AbortSignal) =>
    send<t.CheckedReceivers>("POST", "/api/v1/notifications/check", { text }, signal),
  acknowledge: (labels: t.Tags, by: string, comment: string, until?: number) =>
    send<{ alerts: number }>("POST", "/api/v1/alerts/ack", {
      labels,
      by,
      comment,
      until: until === undefined ? undefined : new Date(until).toISOString(),
    }),
  withdrawAcknowledgement: (labels: t.Tags) =>
    send<{ alerts: number }>("POST", "/api/v1/alerts/unack", { labels }),
  receivers: (signal?: AbortSignal) => get<t.ReceiverEntry[]>("/api/v2/receivers", {}, signal),
  testReceiver: (receiver: string) =>
    send<t.TestedReceiver>("POST", "/api/v1/receivers/test", { receiver }),
  silences: (signal?: AbortSignal) => get<t.Silence[]>("/api/v2/silences", {}, signal),
  silence: (silence: t.NewSilence) =>
    send<{ silenceID: string }>("POST", "/api/v2/silences", silence),
  expireSilence: (id: string) => send<unknown>("DELETE", `/api/v2/silence/${encoded(id)}`),
  caller: (signal?: AbortSignal) => get<t.CallerAnswer>("/api/v1/access/me", {}, signal),
  provider: (signal?: AbortSignal) => get<t.ProviderAnswer>("/api/v1/access/oidc", {}, signal),
  login: (login: t.Login) => send<t.CallerAnswer>("POST", LOGIN, login),
  accept: (code: string, user: string, password: string) =>
    send<t.CallerAnswer>("POST", ACCEPT, { code, user, password }),
  logout: () => send<unknown>("POST", "/api/v1/access/logout"),
  changePassword: (password: string, newPassword: string) =>
    send<t.CallerAnswer>("POST", "/api/v1/access/password", {
      password,
      new_password: newPassword,
    }),
  beginTotp: (password: string) => send<t.TotpSecret>("POST", "/api/v1/access/totp", { password }),
  confirmTotp: (code: string) =>
    send<t.CallerAnswer>("POST", "/api/v1/access/totp/confirm", { code }),
  removeTotp: (password: string) =>
    send<t.CallerAnswer>("POST", "/api/v1/access/totp/remove", { password }),
  sessions: (signal?: AbortSignal) => get<t.SessionsAnswer>("/api/v1/access/sessions", {}, signal),
  endSession: (id: string) => send<unknown>("DELETE", `/api/v1/access/sessions/${encoded(id)}`),
  endAllSessions: () => send<unknown>("DELETE", "/api/v1/access/sessions"),
  users: (signal?: AbortSignal) => get<t.UsersAnswer>("/api/v1/access/users", {}, signal),
  addUser: (user: t.NewUser) => send<t.UserEntry>("POST", "/api/v1/access/users", user),
  changeUser: (name: string, changes: t.UserChanges) =>
    send<t.UserEntry>("POST", `/api/v1/access/users/${encoded(name)}`, changes),
  removeUser: (name: string) => send<unknown>("DELETE", `/api/v1/access/users/${encoded(name)}`),
  audit: (
    params: { who?: string; since?: number; until?: number; before?: number; limit: number },
    signal?: AbortSignal,
  ) => get<t.AuditAnswer>("/api/v1/admin/audit", params, signal),
  keys: (signal?: AbortSignal) => get<t.KeysAnswer>("/api/v1/access/keys", {}, signal),
  addKey: (key: t.NewKey) => send<t.KeyWithToken>("POST", "/api/v1/access/keys", key),
  rotateKey: (id: string, overlapMs: number) =>
    send<t.KeyWithToken>("POST", `/api/v1/access/keys/${encoded(id)}/rotate`, {
      overlap_ms: overlapMs,
    }),
  revokeKey: (id: string) => send<unknown>("DELETE", `/api/v1/access/keys/${encoded(id)}`),
  codes: (signal?: AbortSignal) => get<t.CodesAnswer>("/api/v1/access/codes", {}, signal),
  addCode: (code: t.NewCode) => send<t.CodeWithText>("POST", "/api/v1/access/codes", code),
  revokeCode: (id: string) => send<unknown>("DELETE", `/api/v1/access/codes/${encoded(id)}`),
  cardinality: (params: { limit: number }, signal?: AbortSignal) =>
    get<t.CardinalityAnswer>("/api/v1/cardinality", params, signal),
  status: (signal?: AbortSignal) => get<t.StatusAnswer>("/api/v1/status", {}, signal),
};

/** The maximum number of values that a list of choices requests. */
const CHOICES_MAX = 5000;

/** All values of a tag, of one metric's series if a metric is given. */
export async function valuesOfTag(
  tag: string,
  metric?: string,
  signal?: AbortSignal,
): Promise<string[]> {
  const matchers = metric ? { "match[]": `{__name__=${JSON.stringify(metric)}}` } : {};
  const params = { limit: CHOICES_MAX, ...matchers };
  const path = `/api/v1/label/${encoded(tag)}/values`;
  return (await get<t.PromqlAnswer<string[]>>(path, params, signal)).data ?? [];
}

/** A fetch for libraries that use Prometheus' API: limited, and to this daemon only. */
export function promqlFetch(input: RequestInfo, init?: RequestInit): Promise<Response> {
  const requested = new URL(input instanceof Request ? input.url : input, location.origin);
  const url = new URL(requested.pathname + requested.search, location.origin);
  url.searchParams.set("limit", String(CHOICES_MAX));
  const timeout = AbortSignal.timeout(10_000);
  const signal = init?.signal ? AbortSignal.any([init.signal, timeout]) : timeout;
  const headers = withKey(init?.headers);
  return fetch(url, { ...init, headers, credentials: "same-origin", signal });
}

/**
 * The page sends a health check after this time without an answer. With the timeout of the check,
 * it notices an outage within three seconds, even when the machine is busy.
 */
const SILENT_MS = 1000;
/** The daemon counts as away when it does not answer the health check within this time. */
const CHECK_TIMEOUT_MS = 1400;
/** The pause after a failed check. */
const RETRY_MS = 500;
/** The number of requests under way from which on the browser queues requests. */
const PENDING_MAX = 5;
const QUEUED_CHECK_TIMEOUT_MS = 10_000;

async function checkHealth(): Promise<void> {
  const timeout = AbortSignal.timeout(
    pendingRequests < PENDING_MAX ? CHECK_TIMEOUT_MS : QUEUED_CHECK_TIMEOUT_MS,
  );
  try {
    const answer = await fetchAnswer("/healthz", { signal: timeout, cache: "no-store" });
    await answer.text();
  } catch {
    // `awaySince` is set already, unless the request timed out.
    if (timeout.aborted) markAway();
  }
}

/** Watches for the daemon while the page is visible, and sets `awaySince`. */
export function watchDaemon(): () => void {
  let timer: ReturnType<typeof setTimeout>;
  let isStopped = false;
  const silence = () => SILENT_MS - (performance.now() - answeredAt);
  const check = async () => {
    if (silence() <= 0 && !document.hidden) await checkHealth();
    const left = silence();
    if (!isStopped) timer = setTimeout(() => void check(), left > 0 ? left : RETRY_MS);
  };
  timer = setTimeout(() => void check(), SILENT_MS);
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}

/** Calls once the daemon answers again after an outage. */
export function onDaemonBack(call: () => void): () => void {
  let wasAway = awaySince.peek() !== null;
  return awaySince.subscribe((away) => {
    if (wasAway && away === null) setTimeout(call, 0);
    wasAway = away !== null;
  });
}
