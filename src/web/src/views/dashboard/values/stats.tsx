/** The value of each series as a number. */
import { LevelValue } from "./level";
import type { ReducedSeries } from "./reduce";

export function Stats({ found }: { found: readonly ReducedSeries[] }) {
  return (
    <ul class="stats">
      {found.map(({ series, value, level }) => (
        <li key={series.key}>
          <LevelValue value={value} unit={series.unit} level={level} />
          {found.length > 1 && <span class="values-label muted">{series.label}</span>}
        </li>
      ))}
    </ul>
  );
}
