/** A button that opens a small box of choices. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import "../styles/popover.css";
import { Icon } from "./icon";

interface Props {
  /** The name of the choice. */
  label: string;
  /** The current choice. */
  text: string;
  align?: "left" | "right";
  /** True if the button shows only the choice. */
  isLabelHidden?: boolean;
  /** The content, or a function that receives the way to close the box. */
  children: ComponentChildren | ((close: () => void) => ComponentChildren);
}

export function Popover({ label, text, align = "left", isLabelHidden, children }: Props) {
  const isOpen = useSignal(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();
  useEffect(() => {
    if (!isOpen.value) return;
    const leave = (event: Event) => {
      const isInside = event.target instanceof Node && root.current?.contains(event.target);
      if (!isInside) isOpen.value = false;
    };
    document.addEventListener("pointerdown", leave);
    document.addEventListener("focusin", leave);
    return () => {
      document.removeEventListener("pointerdown", leave);
      document.removeEventListener("focusin", leave);
    };
  }, [isOpen.value]);
  const close = () => {
    isOpen.value = false;
    button.current?.focus();
  };
  return (
    <div
      class="popover"
      ref={root}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !isOpen.value) return;
        event.preventDefault();
        event.stopPropagation();
        close();
      }}
    >
      <button
        type="button"
        ref={button}
        class="button popover-button"
        aria-expanded={isOpen.value}
        aria-controls={id}
        title={`${label}: ${text}`}
        onClick={() => (isOpen.value = !isOpen.value)}
      >
        <span class={isLabelHidden ? "hidden-text" : "muted"}>{label}</span>{" "}
        <span class="popover-text">{text}</span>
        <Icon name="down" />
      </button>
      <div
        id={id}
        class={`popover-box ${align}`}
        hidden={!isOpen.value}
        role="group"
        aria-label={label}
      >
        {!isOpen.value ? null : typeof children === "function" ? children(close) : children}
      </div>
    </div>
  );
}
