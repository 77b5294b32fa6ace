/** Roles of a user while they are edited, and as texts. Pure. */
import type { Role, Roles } from "../../api/types";

export const ROLES: readonly { role: Role; label: string }[] = [
  { role: "viewer", label: "Viewer" },
  { role: "editor", label: "Editor" },
  { role: "admin", label: "Admin" },
];

/** The project that stands for every project and the daemon itself. */
export const EVERY_PROJECT = "*";
const DEFAULT_PROJECT = "default";

export interface RoleRow {
  project: string;
  role: Role;
}

export function rowsOf(roles: Roles): RoleRow[] {
  return Object.entries(roles).map(([project, role]) => ({ project, role }));
}

/** The row of a new user, or of an additional project. */
export function newRow(rows: readonly RoleRow[]): RoleRow {
  return { project: rows.length === 0 ? DEFAULT_PROJECT : "", role: "viewer" };
}

/** The first error in the rows; `undefined` without errors. */
export function rolesFault(rows: readonly RoleRow[]): string | undefined {
  const projects = rows.map(({ project }) => project.trim());
  if (projects.includes("")) return "Enter a project for each role.";
  const repeated = projects.find((project, k) => projects.indexOf(project) !== k);
  return repeated === undefined ? undefined : `The project ${repeated} has two roles.`;
}

export function rolesOf(rows: readonly RoleRow[]): Roles {
  return Object.fromEntries(rows.map(({ project, role }) => [project.trim(), role]));
}

/** `editor of default`, `admin of everything` */
export function roleTexts(roles: Roles): string[] {
  return Object.entries(roles).map(
    ([project, role]) => `${role} of ${project === EVERY_PROJECT ? "everything" : project}`,
  );
}
