/** A series that moved: its values before and during the stretch, as a link to its chart. */
import { Fragment } from "preact";
import type { MovedAnswer, MovedSeries } from "../../api/types";
import { href } from "../../app/address";
import type { TimeFrame } from "../../chart/frame";
import { unitOf, valueText } from "../../model/units";
import { withTimes, writeChoice } from "../../model/timeframe";
import { HOST_TAGS } from "../../chart/labels";
import { tagsOf } from "../../queries/tags";
import { BOX, changeOf, movedSpark } from "./spark";

interface Props {
  found: MovedSeries;
  answer: MovedAnswer;
  frame: TimeFrame;
}

export function MovedTile({ found, answer, frame }: Props) {
  const { metric, tags, display, median_before: before, mean_during: during } = found;
  const { path, stretchX, beforeY } = movedSpark(found.points, answer.start, before);
  const unit = unitOf(found.unit, display);
  const choice = withTimes(frame.choice.value, answer.before, answer.end);
  const target = href("/explore", {
    metric,
    tags: tagsOf(new Map(Object.entries(tags))),
    ...writeChoice(choice, { zone: "" }),
  });
  return (
    <li>
      <a class="moved-tile card" href={target}>
        <span class="moved-name mono">
          {metric.split(/(?<=[_:.])/).map((word, k) => (
            <Fragment key={k}>
              <wbr />
              {word}
            </Fragment>
          ))}
        </span>
        <span class="labels">
          {inOrder(Object.entries(tags)).map(([name, value]) => (
            <span key={name} class="badge">
              {name}={value}
            </span>
          ))}
        </span>
        <svg
          viewBox={`0 0 ${BOX.width} ${BOX.height}`}
          preserveAspectRatio="none"
          aria-hidden="true"
        >
          <rect class="moved-stretch" x={stretchX} width={BOX.width - stretchX} height="100%" />
          {beforeY !== undefined && <path class="moved-before" d={`M0 ${beforeY}H${BOX.width}`} />}
          <path class="moved-line" d={path} />
        </svg>
        <span class="moved-values num">
          <span>{valueText(before, unit)}</span>
          <span aria-hidden="true">→</span>
          <span class="hidden-text"> to </span>
          <span>{valueText(during, unit)}</span>
          <strong>{changeOf(before, during)}</strong>
        </span>
      </a>
    </li>
  );
}

/** Tags with the host first. */
function inOrder(tags: [string, string][]): [string, string][] {
  const rank = (name: string) => (HOST_TAGS.includes(name) ? 0 : 1);
  return tags.sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1));
}
