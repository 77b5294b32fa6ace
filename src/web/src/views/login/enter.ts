/** Entering the page after a login. */
import { caller, noteCaller } from "../../api/session";
import type { CallerAnswer } from "../../api/types";
import { address, navigate } from "../../app/address";
import { unsavedWork } from "../../app/guard";

/** Shows the view of the address again, or the fleet after a login at `/login`. */
export function enter(answer: CallerAnswer): void {
  const before = caller.peek();
  noteCaller(answer);
  if (address.peek().path === "/login") navigate("/", { replace: true });
  // The page contains data and unsaved work of another person.
  else if (before !== undefined && before.name !== answer.name) {
    unsavedWork.value = undefined;
    location.reload();
  }
}
