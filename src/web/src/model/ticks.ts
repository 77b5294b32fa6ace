/** Ticks of a time axis and their labels, by a zone's clock. */
import {
  DAY,
  HOUR,
  MINUTE,
  MONTHS,
  clockAt,
  dayText,
  instantOf,
  offsetAt,
  timeText,
  zoneName,
} from "./zone";

export interface Tick {
  at: number;
  /** The label, of one or two lines. */
  text: string;
}

/** Steps in milliseconds, of whole days, and of whole months. */
const STEPS: { unit: "time" | "day" | "month"; count: number; approxLength: number }[] = [
  ...[1, 2, 5, 10, 15, 30].map((n) => ({
    unit: "time" as const,
    count: n * MINUTE,
    approxLength: n * MINUTE,
  })),
  ...[1, 2, 3, 6, 12].map((n) => ({
    unit: "time" as const,
    count: n * HOUR,
    approxLength: n * HOUR,
  })),
  ...[1, 2, 7, 14].map((n) => ({ unit: "day" as const, count: n, approxLength: n * DAY })),
  ...[1, 2, 3, 6, 12, 24, 60, 120].map((n) => ({
    unit: "month" as const,
    count: n,
    approxLength: n * 30.4 * DAY,
  })),
];

type Step = (typeof STEPS)[number];

/** Returns the ticks between two instants, at most `ticksMax`. */
export function timeTicks(zone: string, start: number, end: number, ticksMax: number): Tick[] {
  const lengthMin = (end - start) / Math.max(ticksMax, 1);
  const step = STEPS.find(({ approxLength }) => approxLength >= lengthMin) ?? STEPS.at(-1);
  if (!step || end <= start) return [];
  return labelTicks(zone, step, tickTimes(zone, step, start, end));
}

function tickTimes(zone: string, step: Step, start: number, end: number): number[] {
  if (step.unit === "time") return timesOfDay(zone, step.count, start, end);
  const first = clockAt(zone, start);
  const times: number[] = [];
  for (let k = 0; times.length < 1000; k++) {
    const at =
      step.unit === "day"
        ? instantOf(zone, first.year, first.month, firstDay(first, step.count) + k * step.count)
        : instantOf(zone, first.year, firstMonth(first, step.count) + k * step.count, 1);
    if (at > end) break;
    if (at >= start) times.push(at);
  }
  return times;
}

/**
 * Times that are whole steps after midnight by the clock. Every quarter of an hour is checked, so
 * that a repeated hour has its ticks twice, and a skipped hour has none.
 */
function timesOfDay(zone: string, step: number, start: number, end: number): number[] {
  const stride = Math.min(step, 15 * MINUTE);
  const times: number[] = [];
  for (let at = Math.ceil(start / stride) * stride; at <= end; at += stride) {
    if ((at + offsetAt(zone, at)) % step === 0) times.push(at);
  }
  return times;
}

/** The day of the month that days count from: weeks begin on Monday. */
function firstDay(clock: { year: number; month: number; day: number }, count: number): number {
  const number = Math.floor(Date.UTC(clock.year, clock.month - 1, clock.day) / DAY);
  const sinceMonday = number + 3;
  return clock.day - (count % 7 === 0 ? sinceMonday % count : number % count);
}

function firstMonth(clock: { year: number; month: number }, count: number): number {
  return clock.month - ((clock.year * 12 + clock.month - 1) % count);
}

function labelTicks(zone: string, step: Step, times: number[]): Tick[] {
  let previous: { day: string; year: number; offset: number } | undefined;
  return times.map((instant) => {
    const clock = clockAt(zone, instant);
    const current = { day: dayText(clock), year: clock.year, offset: offsetAt(zone, instant) };
    const isFirst = previous === undefined;
    const isOffsetChanged = previous !== undefined && previous.offset !== current.offset;
    const isNewDay = previous?.day !== current.day;
    const isNewYear = previous?.year !== current.year;
    previous = current;
    const secondLine =
      step.unit === "time"
        ? isNewDay
          ? current.day
          : isOffsetChanged
            ? zoneName(zone, instant)
            : ""
        : isNewYear && (isFirst || step.unit === "day" || step.count < 12)
          ? String(current.year)
          : "";
    const text =
      step.unit === "time"
        ? timeText(clock)
        : step.unit === "day"
          ? current.day
          : step.count < 12
            ? (MONTHS[clock.month - 1] ?? "")
            : String(current.year);
    return {
      at: instant,
      text: secondLine && secondLine !== text ? `${text}\n${secondLine}` : text,
    };
  });
}
