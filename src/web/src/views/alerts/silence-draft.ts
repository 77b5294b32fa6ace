/** A silence while it is edited: its errors, and the body to send. Pure. */
import type { NewSilence, Recurrence, Silence, SilenceMatcher, Tags } from "../../api/types";
import { matchersOfAll } from "./chosen";
import { fieldValue, instantOfValue } from "../../model/field-time";
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
  /** The start in the format of form fields, by the clock of `zone`. */
  start: string;
  end: string;
  zone: string;
  /** The initial instants of the fields, which cannot show seconds. */
  initial: { start: number; end: number };
  /** The zone of `from` and `until`. */
  windowZone: string;
  isRecurring: boolean;
  weekdays: string[];
  from: string;
  until: string;
  comment: string;
}

/** The initial length of a silence. */
const LENGTH_MS = 2 * HOUR;
/** A silence that lasts longer has no end. */
const FAR_MS = 100 * 365 * 24 * HOUR;

/** The maximum size of a value or pattern that the daemon accepts, in bytes. */
const VALUE_BYTES_MAX = 4096;

const bytesOf = (text: string) => new TextEncoder().encode(text).length;

export interface SilenceSubject {
  labels?: Tags | undefined;
  silence?: Silence | undefined;
  /** Several alerts, each with its labels. */
  chosen?: readonly { alert: { labels: Tags } }[] | undefined;
}

export function draftOf(
  { labels, silence, chosen }: SilenceSubject,
  zone: string,
  now: number,
): SilenceDraft {
  const isOver = silence?.status.state === "expired";
  const subjects = chosen?.map(({ alert }) => alert.labels) ?? [labels ?? {}];
  const matchers = silence?.matchers ?? matchersOfAll(subjects);
  const again = silence?.recurring;
  const from = silence && !isOver ? Date.parse(silence.recursFrom ?? silence.startsAt) : now;
  const until =
    silence && !isOver ? Date.parse(silence.recursUntil ?? silence.endsAt) : now + LENGTH_MS;
  return {
    id: isOver ? undefined : silence?.id,
    matchers:
      matchers.length > 0 ? matchers : [{ name: "", value: "", isRegex: false, isEqual: true }],
    start: fieldValue(zone, from),
    end: until - now < FAR_MS ? fieldValue(zone, until) : "",
    zone,
    initial: { start: from, end: until },
    windowZone: again?.zone ?? zone,
    isRecurring: again !== undefined,
    weekdays: again?.weekdays ?? ["sunday"],
    from: again?.from ?? "02:00",
    until: again?.until ?? "04:00",
    comment: silence?.comment ?? "",
  };
}

/** The first error in the form; `undefined` without errors. */
export function silenceFault(draft: SilenceDraft, author: string): string | undefined {
  const { matchers, isRecurring, from, until, weekdays, comment } = draft;
  const namedMatchers = matchers.filter(({ name }) => name.trim() !== "");
  if (namedMatchers.length === 0) return "Enter a label.";
  if (namedMatchers.every(({ value, isEqual }) => value === "" && isEqual)) {
    return "Enter a value for each label.";
  }
  const long = namedMatchers.find(({ value }) => bytesOf(value) > VALUE_BYTES_MAX);
  if (long) {
    const limit = VALUE_BYTES_MAX.toLocaleString("en");
    return `The value of ${long.name.trim()} has more than ${limit} bytes: select fewer alerts.`;
  }
  if (isRecurring && !isZone(draft.windowZone)) return "Choose a time zone.";
  const [startTime, endTime] = instantsOf(draft);
  if (startTime === undefined || (!isRecurring && endTime === undefined))
    return "Enter start and end.";
  if (endTime !== undefined && endTime <= startTime) return "The end is before the start.";
  if (isRecurring && (!isClockTime(from) || !isClockTime(until)))
    return "Enter start and end time.";
  if (isRecurring && weekdays.length === 0) return "Choose a weekday.";
  if (author.trim() === "") return "Enter an author.";
  return comment.trim() === "" ? "Enter a comment." : undefined;
}

/** Start and end, to the millisecond unless the reader edited them. */
function instantsOf({ zone, start, end, initial }: SilenceDraft) {
  const editedOrInitial = (field: string, startTime: number) =>
    field === fieldValue(zone, startTime) ? startTime : instantOfValue(zone, field);
  return [editedOrInitial(start, initial.start), editedOrInitial(end, initial.end)] as const;
}

const isClockTime = (text: string) => /^\d\d:\d\d$/.test(text);

export function silenceOf(draft: SilenceDraft, author: string): NewSilence {
  const { windowZone, isRecurring, weekdays, from, until, id } = draft;
  const [startTime = 0, endTime] = instantsOf(draft);
  const recurring: Recurrence | null = isRecurring
    ? { weekdays, from, until, zone: windowZone }
    : null;
  return {
    ...(id === undefined ? {} : { id }),
    matchers: draft.matchers
      .filter(({ name }) => name.trim() !== "")
      .map((matcher) => ({ ...matcher, name: matcher.name.trim() })),
    startsAt: new Date(startTime).toISOString(),
    ...(endTime === undefined ? {} : { endsAt: new Date(endTime).toISOString() }),
    createdBy: author.trim(),
    comment: draft.comment.trim(),
    recurring,
  };
}
