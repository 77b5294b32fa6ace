/** A value with the colour of its level; screen readers get the level as a word. */
import type { Level } from "../../../api/types";
import { valueText, type Unit } from "../../../model/units";

const WORDS: Record<Level, string> = { none: "", good: "good", warn: "warning", bad: "bad" };

interface Props {
  value: number | undefined;
  unit: Unit;
  level: Level;
}

export function LevelValue({ value, unit, level }: Props) {
  return (
    <span class={`level ${level} num`}>
      {valueText(value, unit)}
      {level !== "none" && <span class="hidden-text"> ({WORDS[level]})</span>}
    </span>
  );
}
