/** A dialog for a rule made from a chart: saved on the daemon, or as a file. */
import { useSignal } from "@preact/signals";
import { may } from "../api/session";
import { href } from "../app/address";
import { saveFile } from "../chart/save";
import { slug } from "../chart/state";
import { isPlainNumber } from "../model/quantity";
import type { Unit } from "../model/units";
import { useAttempt } from "../parts/attempt";
import { copyText } from "../parts/clipboard";
import { Dialog, ErrorLine, TextField } from "../parts/dialog";
import { Icon } from "../parts/icon";
import {
  draftFault,
  OPERATORS,
  ruleFile,
  SEVERITIES,
  comparisonText,
  thresholdOf,
  type RuleDraft,
} from "./draft";
import type { Comparable } from "./of-chart";
import { RuleCheck } from "./rule-check";
import { saveRule, type SavedRule } from "./save";
import "../styles/rules.css";

export interface RuleDialogProps {
  draft: RuleDraft;
  /** The expressions of the chart, if there are several. */
  expressions: readonly Comparable[];
  onClose: () => void;
}

export function RuleDialog({ draft: initialDraft, expressions, onClose }: RuleDialogProps) {
  const draft = useSignal(initialDraft);
  const saved = useSignal<SavedRule | undefined>(undefined);
  const changeDraft = (changes: Partial<RuleDraft>) => {
    draft.value = { ...draft.value, ...changes };
    saved.value = undefined;
  };
  // The unit of an edited expression is unknown.
  const chooseExpression = (expression: string) =>
    changeDraft({
      expression,
      unit: expressions.find((choice) => choice.expression === expression)?.unit,
    });
  const { name, expression, operator, value, lasting, severity, summary } = draft.value;
  const text = ruleFile(draft.value);
  const fault = draftFault(draft.value);
  const isAdmin = may("admin") === true;
  const { busy, error, run } = useAttempt();
  const save = () => void run(async () => void (saved.value = await saveRule(draft.value)));
  if (saved.value?.isTaken === false) {
    return <SavedDialog rule={name.trim()} text={saved.value.text} onClose={onClose} />;
  }
  return (
    <Dialog title="Alert rule" wide onClose={onClose}>
      <div class="rule-dialog">
        <div class="stacked">
          <TextField label="Name" value={name} onText={(name) => changeDraft({ name })} />
          {expressions.length > 1 && (
            <label class="labelled">
              Series
              <select
                value={expression}
                onInput={(event) => chooseExpression(event.currentTarget.value)}
              >
                {[...new Set([expression, ...expressions.map((choice) => choice.expression)])].map(
                  (word) => (
                    <option key={word}>{word}</option>
                  ),
                )}
              </select>
            </label>
          )}
          <TextField label="Expression" isCode value={expression} onText={chooseExpression} />
          <div class="rule-compared">
            <label class="labelled">
              Operator
              <select
                value={operator}
                onInput={(event) =>
                  changeDraft({ operator: event.currentTarget.value as RuleDraft["operator"] })
                }
              >
                {OPERATORS.map((word) => (
                  <option key={word}>{word}</option>
                ))}
              </select>
            </label>
            <TextField
              label="Threshold"
              isFirst
              isCode
              placeholder={exampleThreshold(draft.value.unit)}
              hint={convertedHint(draft.value)}
              value={value}
              onText={(value) => changeDraft({ value })}
            />
            <TextField
              label="For"
              isCode
              placeholder="5m"
              value={lasting}
              onText={(lasting) => changeDraft({ lasting })}
            />
            <label class="labelled">
              Severity
              <select
                value={severity}
                onInput={(event) => changeDraft({ severity: event.currentTarget.value })}
              >
                {SEVERITIES.map((word) => (
                  <option key={word} value={word}>
                    {word || "none"}
                  </option>
                ))}
              </select>
            </label>
          </div>
          <TextField
            label="Summary"
            placeholder="Load of {{ $labels.host }} is {{ $value }}"
            value={summary}
            onText={(summary) => changeDraft({ summary })}
          />
        </div>
        <div class="stacked">
          <pre class="file-text" aria-label="Rule file" tabIndex={0}>
            {text}
          </pre>
          {fault ? (
            <ErrorLine message={fault} />
          ) : (
            <RuleCheck text={text} compared={comparisonText(draft.value)} />
          )}
          <p class="muted">
            {isAdmin && "A saved rule is in effect at once. "}
            {isAdmin ? "Or save it" : "Save the rule"} as a file that <code>alerts.rules</code>{" "}
            names, and reload the daemon.
          </p>
          <ErrorLine message={error.value} />
          {saved.value && <Taken text={saved.value.text} />}
        </div>
      </div>
      <footer class="dialog-foot">
        <button type="button" class="button" onClick={onClose}>
          Close
        </button>
        <button
          type="button"
          class="button"
          disabled={fault !== undefined}
          onClick={() => void copyText(text)}
        >
          <Icon name="copy" /> Copy
        </button>
        <button
          type="button"
          class={isAdmin ? "button" : "button primary"}
          disabled={fault !== undefined}
          onClick={() => saveFile(`${slug(name)}.yml`, new Blob([text], { type: "text/yaml" }))}
        >
          <Icon name="download" /> Save file
        </button>
        {isAdmin && (
          <button
            type="button"
            class="button primary"
            disabled={fault !== undefined || busy.value}
            onClick={save}
          >
            Save rule
          </button>
        )}
      </footer>
    </Dialog>
  );
}

/** The notice that the rule is not saved, because its text would replace another one. */
function Taken({ text }: { text: string }) {
  return (
    <p class="problem" role="alert">
      <Icon name="warning" />
      <span>
        There are rules called <a href={`/alerts/rules/${text}`}>{text}</a> already. Add the rule
        there, or choose another name.
      </span>
    </p>
  );
}

interface SavedProps {
  rule: string;
  /** The name of the rule's text. */
  text: string;
  onClose: () => void;
}

function SavedDialog({ rule, text, onClose }: SavedProps) {
  return (
    <Dialog title="Saved" onClose={onClose}>
      <p role="status">
        The rule {rule} is in effect, in the text <code>{text}</code>.
      </p>
      <footer class="dialog-foot">
        <button type="button" class="button" onClick={onClose}>
          Close
        </button>
        <a class="button" href={`/alerts/rules/${text}`}>
          <Icon name="pencil" /> Edit
        </a>
        <a class="button primary" href={href("/alerts", { rule: `${rule}/${rule}` })}>
          Open rule <Icon name="right" />
        </a>
      </footer>
    </Dialog>
  );
}

/** An example threshold in this unit. */
function exampleThreshold(unit: Unit | undefined): string {
  if (unit === undefined) return "0.9 or 5GB";
  const examples: [string[], string][] = [
    [["bytes", "B", "By"], unit.perSecond ? "10MB/s" : "5GB"],
    [["percent", "%", "ratio"], "90%"],
    [["seconds", "s"], unit.perSecond ? "90%" : "250ms"],
  ];
  return examples.find(([message]) => message.includes(unit.word))?.[1] ?? "5";
}

/** The number that a threshold with a unit is converted to. */
function convertedHint(draft: RuleDraft): string | undefined {
  const number = thresholdOf(draft);
  if (draftFault({ ...draft, name: "a", expression: "a", lasting: "" })) return undefined;
  return isPlainNumber(draft.value.trim())
    ? undefined
    : `equals ${number}${draft.unit?.word ? ` ${draft.unit.word}` : ""}`;
}
