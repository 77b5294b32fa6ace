/** A link to the series that moved in a view's time range. */
import { Icon } from "../parts/icon";
import type { TimeFrame } from "./frame";
import { movedPath } from "./moved-path";

export function MovedLink({ frame, tags }: { frame: TimeFrame; tags: string }) {
  return (
    <a class="button" href={movedPath({ tags }, frame.window.value)}>
      <Icon name="status" /> What moved?
    </a>
  );
}
