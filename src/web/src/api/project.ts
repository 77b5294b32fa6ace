/**
 * The project of this tab, for callers with rights in several. It is kept for the session of the
 * tab, and sent with each request to the daemon.
 */
import { signal } from "@preact/signals";

const STORED_AS = "granary-project";

function readProject(): string {
  try {
    return sessionStorage.getItem(STORED_AS) ?? "";
  } catch {
    return "";
  }
}

/** The chosen project; empty for the one that the daemon chooses. */
const chosenProject = signal(readProject());

/** Keeps the choice and starts the page again, so that no data of another project remains in it. */
export function chooseProject(name: string): void {
  try {
    if (name === "") sessionStorage.removeItem(STORED_AS);
    else sessionStorage.setItem(STORED_AS, name);
  } catch {
    // Without storage, the page shows the project that the daemon chooses.
  }
  location.reload();
}

/** Forgets a choice that the daemon did not accept: the caller has no rights in this project. */
export function followDaemon(project: string): void {
  if (chosenProject.value !== "" && chosenProject.value !== project) chooseProject("");
}

/** Adds the project to the headers of a request. */
export function nameProject(headers: Headers): void {
  if (chosenProject.value !== "") headers.set("x-scope-orgid", chosenProject.value);
}
