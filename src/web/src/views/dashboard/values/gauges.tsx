/** The value of each series as a part of a range. */
import { valueText } from "../../../model/units";
import { LevelValue } from "./level";
import { scaleOf, shareOf, type ReducedSeries } from "./reduce";

interface Props {
  found: readonly ReducedSeries[];
  min: number | undefined;
  max: number | undefined;
}

/** Half a circle. */
const ARC = "M8 48A42 42 0 0 1 92 48";

export function Gauges({ found, ...ends }: Props) {
  const scale = scaleOf(found, ends);
  return (
    <ul class="gauges">
      {found.map(({ series, value, level }) => (
        <li key={series.key}>
          <svg viewBox="0 0 100 54" aria-hidden="true">
            <path class="gauge-track" d={ARC} pathLength={100} />
            <path
              class={`gauge-part level ${level}`}
              d={ARC}
              pathLength={100}
              stroke-dasharray={`${(100 * shareOf(value, scale)).toFixed(2)} 1000`}
            />
          </svg>
          <LevelValue value={value} unit={series.unit} level={level} />
          <span class="gauge-ends muted num" aria-hidden="true">
            <span>{valueText(scale.min, series.unit)}</span>
            <span>{valueText(scale.max, series.unit)}</span>
          </span>
          {found.length > 1 && <span class="values-label muted">{series.label}</span>}
        </li>
      ))}
    </ul>
  );
}
