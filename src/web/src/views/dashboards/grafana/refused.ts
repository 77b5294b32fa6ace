/** The expressions of an imported dashboard that the daemon rejects. */
import { ApiError, api } from "../../../api/client";
import type { Dashboard } from "../../../api/types";
import { fillIntervals } from "../../../chart/interval-variables";
import { expandQueries } from "../../../queries/variables";
import { Notes } from "./parts";

/** A browser sends six requests at a time. */
const REQUESTS_MAX = 6;
/** The maximum number of checked expressions; charts report the faults of the others. */
const EXPRESSIONS_MAX = 300;
const SLOT_MS = 60_000;
const WINDOW_MS = 3_600_000;
const REASON = /^invalid parameter "query": /;

/** Returns a note for each reason, with the titles of the panels. */
export async function refusedQueries(dashboard: Dashboard, signal: AbortSignal): Promise<string[]> {
  const titles = new Map<string, Set<string>>();
  const chosen = Object.fromEntries(dashboard.variables.map(({ name }) => [name, []]));
  for (const panel of dashboard.panels) {
    if (!("queries" in panel)) continue;
    for (const query of expandQueries(panel.queries, chosen)) {
      if (query.kind !== "promql") continue;
      const expression = fillIntervals(query.expression, SLOT_MS, WINDOW_MS);
      titles.set(expression, (titles.get(expression) ?? new Set()).add(panel.title));
    }
  }
  const notes = new Notes();
  const waiting = [...titles].slice(0, EXPRESSIONS_MAX);
  const work = async () => {
    for (let next = waiting.pop(); next && !signal.aborted; next = waiting.pop()) {
      const [expression, panels] = next;
      const reason = await faultOf(expression, signal);
      if (reason !== undefined) panels.forEach((title) => notes.add(reason, title));
    }
  };
  await Promise.all(Array.from({ length: REQUESTS_MAX }, work));
  return notes.lines();
}

/** The reason why the daemon rejects an expression. */
async function faultOf(expression: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    await api.formatQuery(expression, signal);
    return undefined;
  } catch (cause) {
    // Other failures, such as an outage, tell nothing about the expression.
    if (!(cause instanceof ApiError) || cause.status !== 400) return undefined;
    // The position differs for each expression.
    const reason = cause.message.replace(REASON, "").replace(/^\d+:\d+: /, "");
    return `Rejected expressions (${reason.slice(0, 120)})`;
  }
}
