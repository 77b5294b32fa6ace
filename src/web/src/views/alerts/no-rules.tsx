/** The state without rules, and the ways to add some. */
import { Empty } from "../../parts/states";

export function NoRules() {
  return (
    <section class="card section">
      <Empty title="No rules">
        <p>
          The menu of a chart creates a rule from its series, and administrators can write rules
          here. Rules can also be in files: add them to the settings,{" "}
          <code>[alerts] rules = ["/etc/granary/rules/*.yml"]</code>, and reload the daemon; changes
          to rule files need a reload, too. deploy/rules/ contains rules to start with.
        </p>
      </Empty>
    </section>
  );
}
