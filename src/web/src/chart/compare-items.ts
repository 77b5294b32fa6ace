/** The items of a chart's menu that compare it with another time. */
import { escapeReordering } from "../model/harmless";
import { COMPARISONS, comparisonLabel, comparisonWith, type Comparison } from "./compare";
import type { LiveChart } from "./live";
import type { MenuItem } from "./menu";
import type { ChartState } from "./state";

/** The maximum number of offered releases: the newest ones of the chart. */
const RELEASES_MAX = 5;
const TEXT_MAX = 40;

export function comparisonItems(
  live: LiveChart,
  changeState: (next: Partial<ChartState>) => void,
): MenuItem[] {
  const isImpossible = live.isStacked.value || live.hasCells.value;
  const chosen = live.comparison.value;
  const item = (value: Comparison, label: string): MenuItem => ({
    label: `Compare with ${label}`,
    checked: chosen === value,
    disabled: isImpossible,
    onSelect: () => changeState({ compare: chosen === value ? undefined : value }),
  });
  const releases = releasesOf(live);
  const offered = [...COMPARISONS.map(({ value }) => value), ...releases.map(({ value }) => value)];
  const window = live.frame.window.value;
  return [
    ...COMPARISONS.map(({ value, label }) => item(value, label)),
    ...releases.map(({ value, text }) => item(value, `before “${text}”`)),
    ...(chosen && !offered.includes(chosen) ? [item(chosen, comparisonLabel(chosen, window))] : []),
    {
      label: "Difference",
      checked: live.isDifference.value,
      disabled: isImpossible || chosen === undefined,
      onSelect: () => changeState({ diff: !live.isDifference.peek() }),
    },
  ];
}

/** The annotations of users in the window, the newest first. */
function releasesOf(live: LiveChart): { value: Comparison; text: string }[] {
  const { start, end } = live.frame.window.value;
  return live.annotations.value
    .filter(({ source, time }) => source === "user" && time > start && time < end)
    .sort((a, b) => b.time - a.time)
    .slice(0, RELEASES_MAX)
    .map(({ time, text }) => {
      const [line = ""] = text.split("\n");
      const short = line.length > TEXT_MAX ? `${line.slice(0, TEXT_MAX)}…` : line;
      return { value: comparisonWith(time), text: escapeReordering(short) };
    });
}
