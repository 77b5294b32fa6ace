/** What the daemon says of rules, alerts and silences. */
import type { Tags } from "./series";

/** `/api/v1/rules`, Prometheus' form: times are RFC 3339, lengths seconds. */
export type RulesAnswer = Success<{ groups: RuleGroup[] }>;

interface Success<T> {
  status: "success";
  data: T;
}

export interface RuleGroup {
  name: string;
  file: string;
  interval: number;
  /** Alerts of a rule, at most; 0 for any number. */
  limit: number;
  evaluationTime: number;
  lastEvaluation: string;
  missedEvaluations: number;
  rules: Rule[];
}

export type Rule = AlertingRule | RecordingRule;

interface EvaluatedRule {
  name: string;
  query: string;
  labels: Tags;
  health: "ok" | "err" | "unknown";
  lastError?: string;
  evaluationTime: number;
  lastEvaluation: string;
}

export interface RecordingRule extends EvaluatedRule {
  type: "recording";
}

export interface AlertingRule extends EvaluatedRule {
  type: "alerting";
  /** The worst of its alerts. */
  state: "inactive" | "pending" | "firing";
  /** For how long it is pending. */
  duration: number;
  keepFiringFor: number;
  annotations: Tags;
  /** Unless they were not asked for. */
  alerts?: Alert[];
}

export interface Alert {
  labels: Tags;
  annotations: Tags;
  state: "pending" | "firing";
  activeAt: string;
  /** As Go writes a number: `1.2e+01`. */
  value: string;
  keepFiringSince?: string;
  /** It fires because nothing is measured. */
  noData?: boolean;
  acknowledged?: Acknowledgement;
  /** Silences that keep it from being told, by their ids. */
  silencedBy?: string[];
}

/** Somebody looks after an alert, since a time. */
export interface Acknowledgement {
  by: string;
  comment: string;
  at: number;
  /** Until then at most; else until the alert ends. */
  until?: number;
}

/** `/api/v1/alerts/history`: the last to begin first. */
export type AlertHistoryAnswer = Success<{ history: AlertEpisode[] }>;

/** A time in which an alert fired. */
export interface AlertEpisode {
  file: string;
  group: string;
  labels: Tags;
  state: "firing" | "no_data";
  firedAt: string;
  /** `null` while it lasts. */
  resolvedAt: string | null;
  seconds: number | null;
  /** The last that was measured. */
  value: string;
  acknowledged: Acknowledgement | null;
  /** Another result with samples that were late; not shown yet. */
  revised: object | null;
}

/** `/api/v1/rules/check` */
export type CheckedRules = Success<{ groups: number; rules: number }>;

/** `/api/v2/silences`, Alertmanager's form. */
export interface Silence {
  id: string;
  status: { state: "active" | "pending" | "expired" };
  matchers: SilenceMatcher[];
  startsAt: string;
  endsAt: string;
  updatedAt: string;
  createdBy: string;
  comment: string;
  recurring?: Recurrence;
  /** Of what recurs: the whole time, `startsAt` and `endsAt` being those of a window. */
  recursFrom?: string;
  recursUntil?: string;
}

export interface SilenceMatcher {
  name: string;
  value: string;
  isRegex: boolean;
  isEqual: boolean;
}

/** Windows that come again; no weekday stands for each. */
export interface Recurrence {
  weekdays: string[];
  /** `07:30` */
  from: string;
  until: string;
  zone: string;
}

export type NewSilence = Pick<Silence, "matchers" | "startsAt" | "createdBy" | "comment"> & {
  id?: string;
  /** What recurs may have no end. */
  endsAt?: string;
  /** `null` where it does not recur. */
  recurring: Recurrence | null;
};

/** `/api/v2/receivers` */
export interface ReceiverEntry {
  name: string;
}

/** `/api/v1/receivers/test` */
export interface TestedReceiver {
  receiver: string;
  ways: TestedWay[];
}

/** What a receiver said to a test in one of its ways. */
export interface TestedWay {
  /** `webhook/0` */
  way: string;
  /** Taken; refused, as it would be again; not reached. */
  outcome: "sent" | "refused" | "failed";
  answer: string;
  seconds: number;
}
