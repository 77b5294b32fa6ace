/** The confirmation before a text is deleted. */
import { useAttempt } from "../../parts/attempt";
import { FormDialog } from "../../parts/dialog";

interface Props {
  title: string;
  /** The effect of the deletion. */
  effect: string | undefined;
  onClose: () => void;
  /** Rejects when the text cannot be deleted. */
  onDelete: () => Promise<void>;
}

export function DeleteDialog({ title, effect, onClose, onDelete }: Props) {
  const { busy, error, run } = useAttempt();
  return (
    <FormDialog
      title={title}
      action="Delete"
      isReady={!busy.value}
      error={error.value}
      onClose={onClose}
      onSubmit={() => void run(onDelete)}
    >
      {effect !== undefined && <p>{effect}</p>}
    </FormDialog>
  );
}
