/** The times of a key, a code or a user: when and by whom it was made, and when it expires. */
import { now } from "../../api/client";
import { dayOfText, momentText } from "../../app/moment";
import { agoText, inText } from "../../model/words";

interface MadeProps {
  entry: { created: number; created_by: string };
}

interface ExpiresProps {
  entry: { expires: number | null };
}

export function Made({ entry: { created, created_by } }: MadeProps) {
  return (
    <span class="access-time" title={momentText(created)}>
      {dayOfText(created)}
      {created_by !== "" && <small class="muted">by {created_by}</small>}
    </span>
  );
}

export function Expires({ entry: { expires } }: ExpiresProps) {
  if (expires === null) return <span class="muted">never</span>;
  const left = expires - now();
  return (
    <span class="access-time" title={momentText(expires)}>
      {dayOfText(expires)}
      <small class={left > 0 ? "muted" : "bad"}>{left > 0 ? inText(left) : agoText(-left)}</small>
    </span>
  );
}
