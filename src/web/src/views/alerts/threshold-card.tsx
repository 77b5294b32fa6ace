/** A threshold on trial, and the line of the rule file that would set it. */
import type { Signal } from "@preact/signals";
import type { RuleGroup } from "../../api/types";
import { withThreshold, type Comparison } from "../../model/comparison";
import { CopyButton } from "../../parts/copy-button";

interface Props {
  group: RuleGroup;
  comparison: Comparison;
  /** The threshold on trial; `undefined` for the rule's own. */
  threshold: Signal<number | undefined>;
  /** The address where the rule is edited, if the page can edit it. */
  edit: string | undefined;
}

export function ThresholdCard({ group, comparison, threshold, edit }: Props) {
  const { operator, value } = comparison;
  const trial = threshold.value;
  const line = `expr: ${JSON.stringify(withThreshold(comparison, trial ?? value))}`;
  return (
    <section class="card section rule-threshold" aria-label="Threshold">
      <div class="rule-threshold-field">
        <label>
          Threshold {operator}{" "}
          <input
            type="number"
            step="any"
            value={trial ?? value}
            onChange={(event) => {
              const next = event.currentTarget.valueAsNumber;
              threshold.value = Number.isFinite(next) && next !== value ? next : undefined;
            }}
          />
        </label>
        {trial === undefined ? (
          <span class="muted">Drag the dashed line to try another threshold.</span>
        ) : (
          <>
            <span class="muted num">Rule: {value}</span>
            <button
              type="button"
              class="button small"
              onClick={() => (threshold.value = undefined)}
            >
              Reset
            </button>
          </>
        )}
      </div>
      {trial !== undefined && (
        <div class="rule-threshold-line">
          <p>
            The rule is unchanged. To apply, replace its line{" "}
            {edit ? (
              <a href={edit}>in its text</a>
            ) : (
              <>
                in <code>{group.file}</code> and reload
              </>
            )}
            :
          </p>
          <code class="rule-query">{line}</code>
          <CopyButton text={line} class="small" />
        </div>
      )}
    </section>
  );
}
