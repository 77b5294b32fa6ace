/** The choice of a project in the navigation, for callers with rights in several. */
import { chooseProject } from "../api/project";
import { caller, loginProblem } from "../api/session";

export function ProjectChoice() {
  const { project, projects } = caller.value ?? { project: "", projects: [] };
  if (projects.length < 2 || loginProblem.value !== null) return null;
  return (
    <select
      class="project"
      aria-label="Project"
      title={`Project: ${project}`}
      value={project}
      onChange={(event) => chooseProject(event.currentTarget.value)}
    >
      {projects.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
}
