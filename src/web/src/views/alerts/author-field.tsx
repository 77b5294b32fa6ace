/** The author of an action on alerts; this browser remembers the name. */
import { author } from "../../app/author";
import { TextField } from "../../parts/dialog";

const BYTES_MAX = 250;

export function AuthorField({ label, isFirst = false }: { label: string; isFirst?: boolean }) {
  return (
    <TextField
      label={label}
      isFirst={isFirst}
      maxLength={BYTES_MAX}
      placeholder="Your name"
      value={author.value}
      onText={(text) => (author.value = text)}
    />
  );
}
