/** Rules by group: health, last evaluation and alerts. */
import type { Rule, RuleGroup } from "../../api/types";
import { href, param } from "../../app/address";
import { countWithNoun, elapsedText, lengthText } from "../../model/words";
import { Ago } from "../../parts/ago";
import { Icon } from "../../parts/icon";
import { Search } from "../../parts/search";
import { Empty } from "../../parts/states";
import { Table, type Column } from "../../parts/table";
import { NoRules } from "./no-rules";
import { instantOf, nameOfRule } from "./listed";
import { editPath, RuleFiles } from "./rule-files";

const search = param("q");
const COLUMNS: (string | Column)[] = [
  "Rule",
  "State",
  "Expression",
  { name: "Duration", isNumber: true },
];

function isFound(rule: Rule, group: RuleGroup, words: readonly string[]): boolean {
  const text = `${group.name} ${group.file} ${rule.name} ${rule.query}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

export function RuleGroups({ groups }: { groups: readonly RuleGroup[] }) {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = groups
    .map((group) => ({
      ...group,
      rules: group.rules.filter((rule) => isFound(rule, group, words)),
    }))
    .filter(({ rules }) => rules.length > 0);
  return (
    <>
      <RuleFiles />
      <Search
        class="alerts-search"
        label="Search rules"
        placeholder="Search names and expressions"
        param="q"
        text={search.value}
      />
      {groups.length === 0 ? (
        <NoRules />
      ) : (
        found.length === 0 && (
          <section class="card section">
            <Empty title="No matching rule">
              <p>The search looks at names and expressions of rules.</p>
            </Empty>
          </section>
        )
      )}
      {found.map((group) => (
        <Group key={`${group.file} ${group.name}`} group={group} whole={groups} />
      ))}
    </>
  );
}

function Group({ group, whole }: { group: RuleGroup; whole: readonly RuleGroup[] }) {
  const at = instantOf(group.lastEvaluation);
  // Names of rules depend on the whole group, even on rules that the search hides.
  const all = whole.find(({ file, name }) => file === group.file && name === group.name) ?? group;
  const edit = editPath(group);
  return (
    <section class="card section">
      <div class="card-head rule-group-head">
        <h2>{group.name}</h2>
        <span class="muted num">
          every {lengthText(group.interval * 1000)}, {at === undefined ? "never" : <Ago at={at} />},
          took {elapsedText(group.evaluationTime * 1000)}
        </span>
        {group.missedEvaluations > 0 && (
          <span class="badge warn">
            <Icon name="warning" /> {countWithNoun(group.missedEvaluations, "evaluation")} missed
          </span>
        )}
        <code class="muted rule-file">{group.file}</code>
        {edit && (
          <a class="button small rule-group-edit" href={edit} aria-label={`Edit ${group.name}`}>
            <Icon name="pencil" /> Edit
          </a>
        )}
      </div>
      <Table label={`Rules of ${group.name}`} class="rules" columns={COLUMNS}>
        {group.rules.map((rule) => (
          <tr key={nameOfRule(all, rule)}>
            <th scope="row">
              <a href={href("/alerts", { rule: nameOfRule(all, rule) })}>{rule.name}</a>
              {edit && (
                <a
                  class="rule-edit"
                  href={editPath(group, rule) ?? edit}
                  aria-label={`Edit ${rule.name}`}
                  title="Edit"
                >
                  <Icon name="pencil" />
                </a>
              )}
            </th>
            <td>
              <RuleState rule={rule} />
            </td>
            <td>
              <code class="rule-query">{rule.query}</code>
              {rule.lastError && <p class="bad">{rule.lastError}</p>}
            </td>
            <td class="num muted">{elapsedText(rule.evaluationTime * 1000)}</td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

export function RuleState({ rule }: { rule: Rule }) {
  if (rule.health === "err") {
    return (
      <span class="badge bad">
        <Icon name="warning" /> Failing
      </span>
    );
  }
  if (rule.health === "unknown") return <span class="badge">Not evaluated yet</span>;
  if (rule.type === "recording") return <span class="badge">Recording</span>;
  const count = (rule.alerts ?? []).filter(({ state }) => state === rule.state).length;
  const { dot, word } = {
    firing: { dot: "down", word: `${count} firing` },
    pending: { dot: "late", word: `${count} pending` },
    inactive: { dot: "up", word: "Inactive" },
  }[rule.state];
  return (
    <span class="badge">
      <span class={`dot ${dot}`} aria-hidden="true" />
      {word}
    </span>
  );
}
