/** The folder of a dashboard in the list. */
import { useSignal } from "@preact/signals";
import { FormDialog, TextField } from "../../parts/dialog";

interface Props {
  folder: string;
  onClose: () => void;
  onDone: (folder: string) => void;
}

const FOLDER_MAX = 100;

export function FolderDialog({ folder, onClose, onDone }: Props) {
  const text = useSignal(folder);
  return (
    <FormDialog
      title="Folder"
      action="Apply"
      onClose={onClose}
      onSubmit={() => onDone(text.value.trim())}
    >
      <TextField
        label="Folder"
        isFirst
        maxLength={FOLDER_MAX}
        placeholder="none"
        value={text.value}
        onText={(next) => (text.value = next)}
        hint="Dashboards with the same folder are listed together."
      />
    </FormDialog>
  );
}
