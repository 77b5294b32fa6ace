/** A line of the last hour in a table cell: one path, drawn once for each answer. */
import { Component } from "preact";
import type { Spark } from "../api/types";
import { sparkPath } from "./spark-path";

const BOX = { width: 50, height: 22 };

/** Paths by line and scale, so that a row that returns to the viewport is not computed again. */
const paths = new WeakMap<Spark, string>();

interface Props {
  spark: Spark | undefined;
  /** The value at the top; the line's own maximum by default. */
  full?: number;
}

export class Sparkline extends Component<Props> {
  override shouldComponentUpdate(next: Props) {
    return next.spark !== this.props.spark || next.full !== this.props.full;
  }

  override render({ spark, full }: Props) {
    return (
      <svg class="spark" width={BOX.width} height={BOX.height} aria-hidden="true">
        <path d={spark ? pathOf(spark, full) : ""} />
      </svg>
    );
  }
}

function pathOf(spark: Spark, full?: number): string {
  let path = paths.get(spark);
  if (path === undefined) {
    path = sparkPath(spark, BOX, full);
    paths.set(spark, path);
  }
  return path;
}
