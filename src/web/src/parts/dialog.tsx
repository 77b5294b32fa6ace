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

/** Asks before something is lost. */
export function Confirm(props: {
  title: string;
  action: string;
  onYes: () => void;
  onNo: () => void;
  busy?: boolean;
  error?: string | undefined;
  children: ComponentChildren;
}) {
  return (
    <Dialog title={props.title} onClose={props.onNo}>
      {props.children}
      <Problem message={props.error} />
      <footer class="dialog-foot">
        <button type="button" class="button" onClick={props.onNo}>
          Cancel
        </button>
        <button
          type="button"
          class="button primary"
          disabled={props.busy ?? false}
          onClick={props.onYes}
        >
          {props.action}
        </button>
      </footer>
    </Dialog>
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
