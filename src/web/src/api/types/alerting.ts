/** Answers about rules, alerts and silences. */
import type { Tags } from "./series";

/** `/api/v1/rules`, in Prometheus' form: times are RFC 3339, durations seconds. */
export type RulesAnswer = Success<{ groups: RuleGroup[] }>;

interface Success<T> {
  status: "success";
  data: T;
}

export interface RuleGroup {
  name: string;
  file: string;
  interval: number;
  /** The limit of alerts of a rule; 0 for none. */
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
  /** The worst state of its alerts. */
  state: "inactive" | "pending" | "firing";
  /** Seconds for which an alert is pending before it fires. */
  duration: number;
  keepFiringFor: number;
  annotations: Tags;
  /** Absent when not requested. */
  alerts?: Alert[];
}

export interface Alert {
  labels: Tags;
  annotations: Tags;
  state: "pending" | "firing";
  activeAt: string;
  /** A number in Go's notation: `1.2e+01`. */
  value: string;
  keepFiringSince?: string;
  /** The alert fires because data is missing. */
  noData?: boolean;
  acknowledged?: Acknowledgement;
  /** IDs of the silences that suppress its notifications. */
  silencedBy?: string[];
  /** The deliveries to receivers; absent while no receiver was notified. */
  deliveries?: AlertDelivery[];
}

/** The delivery of an alert to an integration of a receiver. */
export interface AlertDelivery {
  receiver: string;
  /** `webhook/0` */
  integration: string;
  /** The last confirmed notification with the alert. */
  at?: number;
  /** The time since which a notification with the alert is pending. */
  pendingSince?: number;
  /** True if the receiver refused the pending notification. */
  isRefused: boolean;
}

/** An acknowledgement of an alert. */
export interface Acknowledgement {
  by: string;
  comment: string;
  at: number;
  /** The end; without this time, the acknowledgement lasts until the alert ends. */
  until?: number;
}

/** `/api/v1/alerts/history`: the newest episode first. */
export type AlertHistoryAnswer = Success<{ history: AlertEpisode[] }>;

/** A time span in which an alert fired. */
export interface AlertEpisode {
  file: string;
  group: string;
  labels: Tags;
  state: "firing" | "no_data";
  firedAt: string;
  /** `null` while the alert fires. */
  resolvedAt: string | null;
  seconds: number | null;
  /** The last measured value. */
  value: string;
  acknowledged: Acknowledgement | null;
  /** A different result after late samples; not shown yet. */
  revised: object | null;
}

/** `/api/v1/rules/check` */
export type CheckedRules = Success<{ groups: number; rules: number }>;

/** `/api/v1/rule-files`: the files that the settings name, and the texts saved on the page. */
export interface RuleFilesAnswer {
  files: RuleFileEntry[];
  notifications: NotificationsEntry;
  /** The message of the last reload or start that refused files. */
  fault?: string;
}

interface TextEntry {
  /** The name of a text, or the path of a file. */
  name: string;
  origin: "page" | "file";
  /** The path of a file. */
  path?: string;
  editable: boolean;
  /** The reason why the page cannot change it. */
  reason?: string;
  /** The version of a text; `null` for a file, a damaged text, and for none. */
  version: number | null;
  changed: number | null;
  faults: TextFault[];
}

export interface RuleFileEntry extends TextEntry {
  groups: number;
  rules: number;
}

export interface NotificationsEntry extends TextEntry {
  receivers: number;
}

export interface TextFault {
  /** `group "hosts", rule 2 (LoadHigh)`; empty when the fault concerns the whole text. */
  location: string;
  /** The line, from 1, if known. */
  line: number | null;
  problem: string;
}

interface WholeText {
  name: string;
  version: number;
  changed: number;
  text: string;
  faults: TextFault[];
}

/** `/api/v1/rule-files/NAME` */
export interface RuleText extends WholeText {
  groups: number;
  rules: number;
}

/** `/api/v1/notifications` */
export interface ReceiversText extends WholeText {
  receivers: number;
}

/** The result of a check, which changes nothing. */
export interface CheckedRuleText {
  faults: TextFault[];
  groups: number;
  rules: number;
}

export interface CheckedReceivers {
  faults: TextFault[];
  receivers: number;
}

export interface SavedRuleText {
  name: string;
  version: number;
  groups: number;
  rules: number;
}

export interface SavedReceivers {
  name: string;
  version: number;
  receivers: number;
}

/** `/api/v2/silences`, in Alertmanager's form. */
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
  /** The bounds of a recurring silence; `startsAt` and `endsAt` are the bounds of one window. */
  recursFrom?: string;
  recursUntil?: string;
}

export interface SilenceMatcher {
  name: string;
  value: string;
  isRegex: boolean;
  isEqual: boolean;
}

/** Recurring windows; no weekday means every day. */
export interface Recurrence {
  weekdays: string[];
  /** `07:30` */
  from: string;
  until: string;
  zone: string;
}

export type NewSilence = Pick<Silence, "matchers" | "startsAt" | "createdBy" | "comment"> & {
  id?: string;
  /** A recurring silence may have no end. */
  endsAt?: string;
  /** `null` for a silence that does not recur. */
  recurring: Recurrence | null;
};

/** `/api/v2/receivers` */
export interface ReceiverEntry {
  name: string;
}

/** `/api/v1/receivers/test` */
export interface TestedReceiver {
  receiver: string;
  integrations: TestedIntegration[];
}

/** A receiver's response to a test by one of its integrations. */
export interface TestedIntegration {
  /** `webhook/0` */
  integration: string;
  /** `refused` is final; `failed` means that the receiver was not reached. */
  outcome: "sent" | "refused" | "failed";
  answer: string;
  seconds: number;
}
