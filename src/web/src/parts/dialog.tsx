/** A window over the page: the browser keeps the focus in it, and gives it back. */
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import "../styles/dialog.css";
import { Icon } from "./icon";

interface Props {
  title: string;
  /** Asked for by Escape and by the cross. */
  onClose: () => void;
  wide?: boolean;
  children: ComponentChildren;
}

/** Is open as long as it is rendered. */
export function Dialog({ title, onClose, wide, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    return () => shown?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      class={wide ? "dialog wide" : "dialog"}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <header class="dialog-head">
        <h2 id={heading}>{title}</h2>
        <button type="button" class="button quiet icon-only" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}

interface FormProps extends Props {
  /** What the button says that does it. */
  action: string;
  /** Whether it can be done now. */
  isReady?: boolean;
  error?: string | undefined;
  onSubmit: () => void;
  /** What stands below the form. */
  below?: ComponentChildren;
}

/** A dialog that is filled in: done by its button or by Enter, or given up. */
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
        <Problem message={error} />
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
  /** Does it; without it the form does. */
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
  /** Whether one begins here. */
  isFirst?: boolean;
  /** Whether it is read by a machine. */
  isCode?: boolean;
  hint?: string | undefined;
}

/** A line of text with its name above it. */
export function TextField(props: FieldProps) {
  const { label, value, onText, maxLength, placeholder, isFirst, isCode, hint } = props;
  const about = useId();
  return (
    <label class="labelled">
      {label}
      <input
        type="text"
        class={isCode ? "mono" : undefined}
        autofocus={isFirst}
        maxLength={maxLength}
        placeholder={placeholder}
        value={value}
        aria-describedby={hint ? about : undefined}
        onInput={(event) => onText(event.currentTarget.value)}
      />
      {hint ? <small id={about}>{hint}</small> : null}
    </label>
  );
}

/** What went wrong with what was asked for here. */
export function Problem({ message }: { message: string | undefined }) {
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
