/** The roles of a user, one for each project. */
import type { Signal } from "@preact/signals";
import type { Role } from "../../api/types";
import { Icon } from "../../parts/icon";
import { newRow, ROLES, type RoleRow } from "./roles";

export function RoleFields({ rows }: { rows: Signal<RoleRow[]> }) {
  const change = (at: number, changes: Partial<RoleRow>) =>
    (rows.value = rows.value.map((row, k) => (k === at ? { ...row, ...changes } : row)));
  return (
    <fieldset class="role-fields">
      <legend>Roles</legend>
      {rows.value.map(({ project, role }, k) => {
        const which = project.trim() || `project ${k + 1}`;
        return (
          // Rows have no keys, and are added only at the end.
          <div key={k} class="role-row">
            <select
              aria-label={`Role in ${which}`}
              value={role}
              onChange={(event) => change(k, { role: event.currentTarget.value as Role })}
            >
              {ROLES.map(({ role, label }) => (
                <option key={role} value={role}>
                  {label}
                </option>
              ))}
            </select>
            <input
              type="text"
              class="mono"
              aria-label={`Project ${k + 1}`}
              placeholder="project"
              maxLength={64}
              value={project}
              onInput={(event) => change(k, { project: event.currentTarget.value })}
            />
            <button
              type="button"
              class="button quiet icon-only"
              aria-label={`Remove the role in ${which}`}
              title="Remove"
              onClick={() => (rows.value = rows.value.filter((_, at) => at !== k))}
            >
              <Icon name="close" />
            </button>
          </div>
        );
      })}
      <button
        type="button"
        class="button small"
        onClick={() => (rows.value = [...rows.value, newRow(rows.value)])}
      >
        <Icon name="plus" /> Role
      </button>
      <small class="muted">
        The project <code>*</code> stands for every project; its admins also operate the daemon.
      </small>
    </fieldset>
  );
}
