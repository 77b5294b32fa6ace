/** A dialog for the title and name of a new dashboard. */
import { useSignal } from "@preact/signals";
import { ApiError } from "../../api/client";
import { freeName, isSlug, NO_SLUG, slugOf } from "../../model/slug";
import { causeText, useAttempt } from "../../parts/attempt";
import { FormDialog, TextField } from "../../parts/dialog";

interface Props {
  heading: string;
  action: string;
  title: string;
  /** The names in use. */
  taken: readonly string[];
  onClose: () => void;
  /** Rejects when saving fails. */
  onSave: (name: string, title: string) => Promise<void>;
}

export function NameDialog({ heading, action, taken, onClose, onSave, ...given }: Props) {
  const title = useSignal(given.title);
  const typed = useSignal<string | undefined>(undefined);
  const { busy, error, run } = useAttempt();
  const name = typed.value ?? freeName(slugOf(title.value), taken, "dashboard");
  const save = () => {
    if (title.value.trim() === "") error.value = "Enter a title.";
    else if (!isSlug(name)) error.value = NO_SLUG;
    else
      void run(
        () => onSave(name, title.value.trim()),
        (cause) => saveError(cause, name),
      );
  };
  return (
    <FormDialog
      title={heading}
      action={action}
      isReady={!busy.value}
      error={error.value}
      onSubmit={save}
      onClose={onClose}
    >
      <TextField
        label="Title"
        isFirst
        maxLength={200}
        value={title.value}
        onText={(text) => (title.value = text)}
      />
      <NameField name={name} onName={(text) => (typed.value = text)} />
    </FormDialog>
  );
}

/** The name of a dashboard in its address. */
export function NameField({ name, onName }: { name: string; onName: (name: string) => void }) {
  return (
    <TextField
      label="Name in the address"
      isCode
      maxLength={64}
      value={name}
      hint={`/dashboards/${name}`}
      onText={onName}
    />
  );
}

/** The error of saving a dashboard under a name. */
export function saveError(cause: unknown, name: string): string {
  if (cause instanceof ApiError && cause.code === "conflict") {
    return `There is a dashboard called ${name} already: give it another name.`;
  }
  return causeText(cause);
}
