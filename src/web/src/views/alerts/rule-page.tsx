/** One rule: its expression, chart with threshold, alerts and history. */
import { signal, useSignal, type Signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { Rule, RuleGroup, Silence } from "../../api/types";
import { href } from "../../app/address";
import { Chart } from "../../chart/chart";
import { TimeControls } from "../../chart/controls";
import { useTimeFrame } from "../../chart/frame";
import { comparisonOf, withThreshold, type Comparison } from "../../model/comparison";
import { lengthText } from "../../model/words";
import { Ago } from "../../parts/ago";
import { Icon } from "../../parts/icon";
import { Rows } from "./alert-list";
import { SelectionBar, useSelection } from "./selection";
import { HistoryCard } from "./history-card";
import { instantOf, nameOfRule, namesakes, severityOf, type ListedAlert } from "./listed";
import { editPath } from "./rule-files";
import { RuleState } from "./rule-groups";
import { ThresholdCard } from "./threshold-card";
import { WeekCard } from "./week-card";

interface Props {
  group: RuleGroup;
  rule: Rule;
  listed: readonly ListedAlert[];
  silences: readonly Silence[];
  onChange: () => void;
}

export function RulePage({ group, rule, listed, silences, onChange }: Props) {
  const name = nameOfRule(group, rule);
  const edit = editPath(group, rule);
  const comparison = useMemo(
    () => (rule.type === "alerting" ? comparisonOf(rule.query) : undefined),
    [rule.type, rule.query],
  );
  // Another rule, or a changed one, has a threshold of its own.
  const threshold = useMemo(() => signal<number | undefined>(undefined), [name, rule.query]);
  const trial =
    comparison && threshold.value !== undefined
      ? withThreshold(comparison, threshold.value)
      : undefined;
  const ofRule = listed.filter((row) => row.group === group && row.rule === rule);
  const selection = useSelection(ofRule);
  return (
    <>
      <div class="head rule-head">
        <a
          class="button quiet icon-only"
          href={href("/alerts", { show: "rules" })}
          aria-label="All rules"
          title="All rules"
        >
          <Icon name="left" />
        </a>
        <h2>{rule.name}</h2>
        <RuleState rule={rule} />
        <Namesakes group={group} rule={rule} />
        {edit && (
          <a class="button rule-head-edit" href={edit}>
            <Icon name="pencil" /> Edit rule
          </a>
        )}
      </div>
      <MeasuredChart key={name} rule={rule} comparison={comparison} threshold={threshold} />
      {comparison && <ThresholdCard {...{ group, comparison, threshold, edit }} />}
      <Facts group={group} rule={rule} />
      {rule.type === "alerting" && ofRule.length > 0 && (
        <section class="card section">
          <div class="card-head">
            <h2>Active alerts</h2>
          </div>
          <SelectionBar listed={ofRule} active={listed} selection={selection} onChange={onChange} />
          <Rows listed={ofRule} silences={silences} selection={selection} onChange={onChange} />
        </section>
      )}
      {rule.type === "alerting" && (
        <WeekCard key={`week ${name}`} rule={rule} query={trial ?? rule.query} />
      )}
      {rule.type === "alerting" && <HistoryCard key={name} rule={rule} group={group} />}
    </>
  );
}

/** Links to the rules of the same name, such as those of other severities. */
function Namesakes({ group, rule }: { group: RuleGroup; rule: Rule }) {
  const same = namesakes(group, rule.name);
  if (same.length < 2) return null;
  return (
    <nav class="choices" aria-label={`Rules named ${rule.name}`}>
      {same.map((other, k) => (
        <a
          key={k}
          href={href("/alerts", { rule: nameOfRule(group, other) })}
          aria-current={other === rule ? "page" : undefined}
        >
          {severityOf(other) || `rule ${k + 1}`}
        </a>
      ))}
    </nav>
  );
}

function Facts({ group, rule }: { group: RuleGroup; rule: Rule }) {
  const at = instantOf(rule.lastEvaluation);
  const facts: [string, string][] = [
    ["Group", group.name],
    ["File", group.file],
    ...Object.entries(rule.labels).map(([name, value]): [string, string] => [
      `Label ${name}`,
      value,
    ]),
  ];
  if (rule.type === "alerting") {
    if (rule.duration > 0) facts.push(["For", lengthText(rule.duration * 1000)]);
    if (rule.keepFiringFor > 0)
      facts.push(["Keep firing for", lengthText(rule.keepFiringFor * 1000)]);
    facts.push(...Object.entries(rule.annotations));
  }
  return (
    <section class="card section rule-facts">
      <code class="rule-query">{rule.query}</code>
      {rule.lastError && (
        <p class="problem">
          <Icon name="warning" /> {rule.lastError}
        </p>
      )}
      <dl>
        <div>
          <dt>Evaluated</dt>
          <dd class="num">
            {at === undefined ? "never" : <Ago at={at} />}, each {lengthText(group.interval * 1000)}
          </dd>
        </div>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

interface MeasuredProps {
  rule: Rule;
  comparison: Comparison | undefined;
  /** The threshold on trial. */
  threshold: Signal<number | undefined>;
}

/** The measured value of the rule, with its threshold, which can be moved. */
function MeasuredChart({ rule, comparison, threshold }: MeasuredProps) {
  const frame = useTimeFrame({ range: "6h", resolution: "1m" }, "rule");
  const expression = comparison?.text ?? rule.query;
  const queries = useMemo(() => [{ kind: "promql" as const, expression }], [expression]);
  /** The threshold under the pointer; each position would be evaluated over the last week. */
  const moved = useSignal<number | undefined>(undefined);
  const value = moved.value ?? threshold.value ?? comparison?.value;
  const thresholds =
    comparison && value !== undefined
      ? [{ value, label: `${rule.name} ${comparison.operator} ${value}` }]
      : undefined;
  const movable = useMemo(
    () =>
      value === undefined
        ? undefined
        : {
            value,
            onMove: (next: number) => (moved.value = next),
            onEnd: (next: number) => {
              moved.value = undefined;
              threshold.value = next === comparison?.value ? undefined : next;
            },
          },
    [value, comparison?.value],
  );
  return (
    <section class="section rule-chart">
      <TimeControls frame={frame} />
      <Chart
        title="Measured value"
        id="rule"
        frame={frame}
        queries={queries}
        thresholds={thresholds}
        movable={movable}
      />
    </section>
  );
}
