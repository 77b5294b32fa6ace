/** A modal dialog: the browser traps the focus, and restores it. */
import type { ComponentChildren, RefObject } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import "../styles/dialog.css";
import { Icon } from "./icon";

interface Props {
  title: string;
  /** Called by Escape and the close button. */
  onClose: () => void;
  wide?: boolean;
  children: ComponentChildren;
}

/** The dialog is open while it is rendered. */
export function Dialog({ title, onClose, wide, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const headingId = useId();
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      class={wide ? "dialog wide" : "dialog"}
      aria-labelledby={headingId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <header class="dialog-head">
        <h2 id={headingId}>{title}</h2>
        <button type="button" class="button quiet icon-only" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}

interface FormProps extends Props {
  /** The label of the button that submits. */
  action: string;
  /** True if the form can be submitted now. */
  isReady?: boolean;
  error?: string | undefined;
  onSubmit: () => void;
  /** Content below the form. */
  below?: ComponentChildren;
}

/** A form in a dialog: its button or Enter submits, Escape cancels. */
export function FormDialog(props: FormProps) {
  const { action, isReady = true, error, onSubmit, below, children, ...dialog } = props;
  return (
    <Dialog {...dialog}>
      <form
        class="stacked"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit();
        }}
      >
        {children}
        <ErrorLine message={error} />
        <DialogFoot action={action} isReady={isReady} onClose={dialog.onClose} />
      </form>
      {below}
    </Dialog>
  );
}

interface FootProps {
  action: string;
  isReady: boolean;
  onClose: () => void;
  /** Called by a click; without it the button submits the form. */
  onDone?: () => void;
}

export function DialogFoot({ action, isReady, onClose, onDone }: FootProps) {
  return (
    <footer class="dialog-foot">
      <button type="button" class="button" onClick={onClose}>
        Cancel
      </button>
      <button
        type={onDone ? "button" : "submit"}
        class="button primary"
        disabled={!isReady}
        onClick={onDone}
      >
        {action}
      </button>
    </footer>
  );
}

interface FieldProps {
  label: string;
  value: string;
  onText: (text: string) => void;
  maxLength?: number;
  placeholder?: string;
  /** The text that the browser may fill in. */
  autocomplete?: "username" | "off";
  /** True if the field receives the initial focus. */
  isFirst?: boolean;
  /** True if the content is code. */
  isCode?: boolean;
  hint?: string | undefined;
  /** The field, for the focus. */
  field?: RefObject<HTMLInputElement | null>;
}

/** A line of text with a label above. */
export function TextField(props: FieldProps) {
  const { label, value, onText, maxLength, placeholder, autocomplete } = props;
  const { isFirst, isCode, hint, field } = props;
  const hintId = useId();
  return (
    <label class="labelled">
      {label}
      <input
        ref={field ?? null}
        type="text"
        class={isCode ? "mono" : undefined}
        autofocus={isFirst}
        maxLength={maxLength}
        placeholder={placeholder}
        autocomplete={autocomplete}
        value={value}
        aria-describedby={hint ? hintId : undefined}
        onInput={(event) => onText(event.currentTarget.value)}
      />
      {hint ? <small id={hintId}>{hint}</small> : null}
    </label>
  );
}

/** The error of the last attempt. */
export function ErrorLine({ message }: { message: string | undefined }) {
  return (
    <p class="problem" role="alert">
      {message ? (
        <>
          <Icon name="warning" />
          <span>{message}</span>
        </>
      ) : null}
    </p>
  );
}
