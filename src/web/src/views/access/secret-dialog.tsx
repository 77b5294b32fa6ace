/** A dialog with the text of a new or rotated key, which the daemon shows once. */
import type { KeyWithToken } from "../../api/types";
import { momentText } from "../../app/moment";
import { OnceDialog } from "./once-dialog";

interface Props {
  shown: KeyWithToken;
  onClose: () => void;
}

export function SecretDialog({ shown: { key, token }, onClose }: Props) {
  return (
    <OnceDialog
      title={`Key ${key.name}`}
      label="Key"
      text={token}
      hint="The daemon shows this key only now, because it stores only a hash. When the key is lost, rotate it."
      onClose={onClose}
    >
      {key.overlap_until !== null && (
        <p>The previous secret stays valid until {momentText(key.overlap_until)}.</p>
      )}
      <p class="muted">
        Agents and the <code>granary</code> program read it from a file (<code>--key-file</code>).
        Other clients send it as <code>Authorization: Bearer</code>, or as the password of Basic.
      </p>
    </OnceDialog>
  );
}
