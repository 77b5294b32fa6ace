/** The address that a panel opens: another dashboard with the same variables and range. Pure. */
import { keyOf, type ChosenValues } from "../../queries/variables";
import type { Choice } from "../../model/timeframe";

/** Parameters of the address that apply to every dashboard. */
const KEPT = ["tz", "refresh"];

export function linkedPath(
  name: string,
  { choice, chosen, params }: { choice: Choice; chosen: ChosenValues; params: URLSearchParams },
): string {
  const { range, resolution, fixed, display } = choice;
  const search = new URLSearchParams({ range, resolution });
  if (fixed) {
    search.set("start", String(fixed.start));
    search.set("end", String(fixed.end));
  }
  if (display) search.set("display", display);
  for (const key of KEPT) {
    const value = params.get(key);
    if (value !== null) search.set(key, value);
  }
  for (const [variable, values] of Object.entries(chosen))
    for (const value of values) search.append(keyOf(variable), value);
  return `/dashboards/${name}?${search.toString()}`;
}
