/** The author of an action on alerts; nothing for callers whose name the daemon knows. */
import { callerName, enteredAuthor } from "../../app/author";
import { TextField } from "../../parts/dialog";

const BYTES_MAX = 250;

export function AuthorField({ label, isFirst = false }: { label: string; isFirst?: boolean }) {
  if (callerName.value !== undefined) return null;
  return (
    <TextField
      label={label}
      isFirst={isFirst}
      maxLength={BYTES_MAX}
      placeholder="Your name"
      value={enteredAuthor.value}
      onText={(text) => (enteredAuthor.value = text)}
    />
  );
}
