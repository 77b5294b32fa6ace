/** The texts of rules: those that the page can edit, and the files of the daemon's machine. */
import { useSignal } from "@preact/signals";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { may } from "../../api/session";
import type { Rule, RuleFileEntry, RuleGroup } from "../../api/types";
import { href } from "../../app/address";
import { countWithNoun } from "../../model/words";
import { Ago } from "../../parts/ago";
import { Callout } from "../../parts/callout";
import { Icon } from "../../parts/icon";
import { Failed } from "../../parts/states";

const REFRESH_MS = 30_000;
/** The number of texts that are listed at first. */
const SHOWN_MAX = 5;
/** The prefix of a text's name in the file of its groups. */
const PAGE_PREFIX = "page:";

const textPath = (name: string) => `/alerts/rules/${encodeURIComponent(name)}`;

/** The address where a group, or a rule of it, is edited; `undefined` if it is in a file. */
export function editPath(group: RuleGroup, rule?: Rule): string | undefined {
  if (may("admin") !== true || !group.file.startsWith(PAGE_PREFIX)) return undefined;
  const place = { group: group.name, rule: rule?.name ?? group.rules[0]?.name };
  return href(textPath(group.file.slice(PAGE_PREFIX.length)), place);
}

export function RuleFiles() {
  return may("admin") === true ? <List /> : null;
}

function List() {
  const { data, error, reload } = useResource("rule-files", (signal) => api.ruleFiles(signal), {
    everyMs: REFRESH_MS,
  }).value;
  const isWhole = useSignal(false);
  if (error && !data) {
    return (
      <section class="card section">
        <Failed message={`Cannot load the rule files: ${error.message}`} onRetry={reload} />
      </section>
    );
  }
  if (!data) return null;
  // What is faulty, and what can be edited, comes first.
  const files = [...data.files].sort((a, b) => rankOf(a) - rankOf(b));
  const shown = isWhole.value ? files : files.slice(0, SHOWN_MAX);
  return (
    <>
      {data.fault !== undefined && (
        <Callout tone="bad" label="Refused rule files" title="Rule files were refused">
          <pre class="file-text">{data.fault}</pre>
        </Callout>
      )}
      <section class="card section" aria-labelledby="rule-files-title">
        <div class="card-head rule-files-head">
          <h2 id="rule-files-title">Rule files</h2>
          <a class="button small" href="/alerts/rules">
            <Icon name="plus" /> New rules
          </a>
        </div>
        {files.length === 0 ? (
          <p class="nothing muted">Write rules here, or name files in alerts.rules.</p>
        ) : (
          <ul class="alert-rows">
            {shown.map((file) => (
              <Row key={`${file.origin} ${file.name}`} file={file} />
            ))}
          </ul>
        )}
        {shown.length < files.length && (
          <div class="card-foot">
            <button type="button" class="button small" onClick={() => (isWhole.value = true)}>
              Show all {files.length}
            </button>
          </div>
        )}
      </section>
    </>
  );
}

function rankOf({ editable, faults }: RuleFileEntry): number {
  if (faults.length > 0) return 0;
  return editable ? 1 : 2;
}

function Row({ file }: { file: RuleFileEntry }) {
  const { name, editable, reason, groups, rules, faults, changed } = file;
  return (
    <li class="alert-row rule-file-row">
      <div class="alert-what">
        {editable ? (
          <>
            <a href={textPath(name)}>{name}</a>
            {changed !== null && (
              <span class="muted num">
                saved <Ago at={changed} />
              </span>
            )}
          </>
        ) : (
          <>
            <strong>{name}</strong>
            <span class="badge">Read-only</span>
            <span class="muted">{reason}</span>
          </>
        )}
        {faults.length > 0 && (
          <span class="badge bad">
            <Icon name="warning" /> {countWithNoun(faults.length, "fault")}
          </span>
        )}
      </div>
      <span class="muted num rule-file-facts">
        {countWithNoun(rules, "rule")} in {countWithNoun(groups, "group")}
      </span>
      <div class="alert-actions">
        {editable && (
          <a class="button small" href={textPath(name)} aria-label={`Edit ${name}`}>
            <Icon name="pencil" /> Edit
          </a>
        )}
      </div>
    </li>
  );
}
