/** A bar for each series, the longest first. */
import { LevelValue } from "./level";
import { scaleOf, shareOf, type ReducedSeries } from "./reduce";

interface Props {
  found: readonly ReducedSeries[];
  min: number | undefined;
  max: number | undefined;
}

export function Bars({ found, ...ends }: Props) {
  const scale = scaleOf(found, ends);
  const sorted = [...found].sort((a, b) => (b.value ?? -Infinity) - (a.value ?? -Infinity));
  return (
    <ul class="bars">
      {sorted.map(({ series, value, level }) => (
        <li key={series.key}>
          <span class="values-label" title={series.label}>
            {series.label}
          </span>
          <LevelValue value={value} unit={series.unit} level={level} />
          <span class="bar-track" aria-hidden="true">
            <span
              class={`bar level ${level}`}
              style={{ width: `${100 * shareOf(value, scale)}%` }}
            />
          </span>
        </li>
      ))}
    </ul>
  );
}
