/** The times at which a rule would have fired over the last week, by its expression of today. */
import { useMemo } from "preact/hooks";
import { ApiError, api, now } from "../../api/client";
import { useResource } from "../../api/resource";
import type { AlertingRule } from "../../api/types";
import { momentText } from "../../app/moment";
import { countWithNoun, lengthText } from "../../model/words";
import { DAY, MINUTE } from "../../model/zone";
import { Failed, Loading } from "../../parts/states";
import { wouldFire, type WouldFire } from "./would-fire";

const LENGTH_MS = 7 * DAY;
/** The expression is evaluated at each step; 2,016 times in a week. */
const STEP_MS = 5 * MINUTE;
/** The maximum number of drawn spans: the newest. */
const SPANS_MAX = 500;

interface Props {
  rule: AlertingRule;
  /** The expression of the rule, or another one on trial. */
  query: string;
}

export function WeekCard({ rule, query }: Props) {
  const end = useMemo(() => Math.floor(now() / STEP_MS) * STEP_MS, [query]);
  const start = end - LENGTH_MS;
  const { data, error, reload } = useResource(`week ${query}`, async (signal) => {
    const seconds = { start: start / 1000, end: end / 1000, step: STEP_MS / 1000 };
    const answer = await api.queryRange({ query, ...seconds }, signal);
    if (!answer.data) throw new ApiError(200, "failed", answer.error ?? "no result");
    return answer.data;
  }).value;
  const found = useMemo(
    () => data && wouldFire(data, STEP_MS, rule.duration * 1000),
    [data, rule.duration],
  );
  return (
    <section class="card section" aria-label="Last 7 days">
      <div class="card-head">
        <h2>Last 7 days</h2>
      </div>
      {found ? (
        <Week found={found} start={start} end={end} isTrial={query !== rule.query} />
      ) : error ? (
        <Failed message={`Cannot evaluate the rule: ${error.message}`} onRetry={reload} />
      ) : (
        <Loading what="the evaluations" />
      )}
    </section>
  );
}

interface WeekProps {
  found: WouldFire;
  start: number;
  end: number;
  /** True for an expression on trial. */
  isTrial: boolean;
}

function Week({ found, start, end, isTrial }: WeekProps) {
  const { spans, series, totalMs } = found;
  const place = (at: number) => (100 * (Math.min(Math.max(at, start), end) - start)) / LENGTH_MS;
  const times = countWithNoun(spans.length, "time");
  const subject = isTrial ? "With this threshold, the rule" : "The rule";
  const text =
    spans.length === 0
      ? `${subject} would not have fired.`
      : `${subject} would have fired ${times} on ${series.toLocaleString("en")} series, ` +
        `for ${lengthText(totalMs)} in total.`;
  return (
    <div class="rule-week">
      <p>
        {text} <span class="muted">Evaluated every {lengthText(STEP_MS)}.</span>
      </p>
      <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
        {spans.slice(-SPANS_MAX).map((span, k) => (
          <rect
            key={k}
            x={place(span.start)}
            width={Math.max(place(span.end) - place(span.start), 0.2)}
            height="10"
          >
            <title>{`${momentText(span.start)} – ${momentText(span.end)}`}</title>
          </rect>
        ))}
      </svg>
      <div class="rule-week-ends muted num">
        <span>{momentText(start)}</span>
        <span>{momentText(end)}</span>
      </div>
    </div>
  );
}
