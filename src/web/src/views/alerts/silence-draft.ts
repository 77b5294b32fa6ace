/** A silence as it is written in the dialog: what is wrong with it, and what is sent. Pure. */
import type { NewSilence, Recurrence, Silence, SilenceMatcher, Tags } from "../../api/types";
import { fieldOf, instantOfField } from "../../model/field-time";
import { HOUR, isZone } from "../../model/zone";

export const WEEKDAYS = [
  "monday",
  "tuesday",
  "wednesday",
  "thursday",
  "friday",
  "saturday",
  "sunday",
] as const;

export interface SilenceDraft {
  id: string | undefined;
  matchers: SilenceMatcher[];
  /** As fields have them, by the clocks of `zone`. */
  start: string;
  end: string;
  zone: string;
  /** Which instants the fields stood for at first: more than a field, which has no seconds, can show. */
  meant: { start: number; end: number };
  /** Whose clocks `from` and `until` go by. */
  windowZone: string;
  isRecurring: boolean;
  weekdays: string[];
  from: string;
  until: string;
  comment: string;
}

/** How long a silence is at first. */
const LENGTH_MS = 2 * HOUR;
/** A time that is further away stands for none. */
const FAR_MS = 100 * 365 * 24 * HOUR;

export interface About {
  labels?: Tags | undefined;
  silence?: Silence | undefined;
}

export function draftOf({ labels, silence }: About, zone: string, now: number): SilenceDraft {
  const isOver = silence?.status.state === "expired";
  const matchers = silence?.matchers ?? matchersOf(labels ?? {});
  const again = silence?.recurring;
  const from = silence && !isOver ? Date.parse(silence.recursFrom ?? silence.startsAt) : now;
  const until =
    silence && !isOver ? Date.parse(silence.recursUntil ?? silence.endsAt) : now + LENGTH_MS;
  return {
    id: isOver ? undefined : silence?.id,
    matchers:
      matchers.length > 0 ? matchers : [{ name: "", value: "", isRegex: false, isEqual: true }],
    start: fieldOf(zone, from),
    end: until - now < FAR_MS ? fieldOf(zone, until) : "",
    zone,
    meant: { start: from, end: until },
    windowZone: again?.zone ?? zone,
    isRecurring: again !== undefined,
    weekdays: again?.weekdays ?? ["sunday"],
    from: again?.from ?? "02:00",
    until: again?.until ?? "04:00",
    comment: silence?.comment ?? "",
  };
}

/** Each label as it is: an alert's silence is about this alert, unless some are taken away. */
function matchersOf(labels: Tags): SilenceMatcher[] {
  const pairs = Object.entries(labels).sort(([a], [b]) => order(a) - order(b) || (a < b ? -1 : 1));
  return pairs.map(([name, value]) => ({ name, value, isRegex: false, isEqual: true }));
}

const order = (name: string) => (name === "alertname" ? 0 : 1);

/** What is wrong with it; `undefined` when nothing. */
export function faultOf(draft: SilenceDraft, author: string): string | undefined {
  const { matchers, isRecurring, from, until, weekdays, comment } = draft;
  const named = matchers.filter(({ name }) => name.trim() !== "");
  if (named.length === 0) return "Name a label of the alerts.";
  if (named.every(({ value, isEqual }) => value === "" && isEqual)) {
    return "One of the labels needs a value.";
  }
  if (isRecurring && !isZone(draft.windowZone)) return "Choose a time zone.";
  const [first, last] = instantsOf(draft);
  if (first === undefined || (!isRecurring && last === undefined)) return "Give the times.";
  if (last !== undefined && last <= first) return "It ends before it begins.";
  if (isRecurring && (!isTime(from) || !isTime(until))) return "Give the times of the day.";
  if (isRecurring && weekdays.length === 0) return "Choose a weekday.";
  if (author.trim() === "") return "Say who you are.";
  return comment.trim() === "" ? "Say why." : undefined;
}

/** From when to when: to the millisecond where nobody wrote another time. */
function instantsOf({ zone, start, end, meant }: SilenceDraft) {
  const of = (field: string, first: number) =>
    field === fieldOf(zone, first) ? first : instantOfField(zone, field);
  return [of(start, meant.start), of(end, meant.end)] as const;
}

const isTime = (text: string) => /^\d\d:\d\d$/.test(text);

export function silenceOf(draft: SilenceDraft, author: string): NewSilence {
  const { windowZone, isRecurring, weekdays, from, until, id } = draft;
  const [first = 0, last] = instantsOf(draft);
  const recurring: Recurrence | null = isRecurring
    ? { weekdays, from, until, zone: windowZone }
    : null;
  return {
    ...(id === undefined ? {} : { id }),
    matchers: draft.matchers
      .filter(({ name }) => name.trim() !== "")
      .map((matcher) => ({ ...matcher, name: matcher.name.trim() })),
    startsAt: new Date(first).toISOString(),
    ...(last === undefined ? {} : { endsAt: new Date(last).toISOString() }),
    createdBy: author.trim(),
    comment: draft.comment.trim(),
    recurring,
  };
}
