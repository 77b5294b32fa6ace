/** A button with a menu of actions; Escape and clicks elsewhere close it. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export interface MenuItem {
  label: string;
  /** The state of an action that toggles. */
  checked?: boolean;
  disabled?: boolean;
  onSelect: () => void;
}

interface MenuProps {
  label: string;
  items: MenuItem[];
  children: ComponentChildren;
}

export function Menu({ label, items, children }: MenuProps) {
  const isOpen = useSignal(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const close = (returnsFocus: boolean) => {
    isOpen.value = false;
    if (returnsFocus) button.current?.focus();
  };
  useEffect(() => {
    if (!isOpen.value) return;
    const list = root.current?.querySelector("[role=menu]");
    list?.querySelector<HTMLElement>("[role^=menuitem]")?.focus();
    list?.scrollIntoView({ block: "nearest" });
    const closeOnOutsideClick = (event: PointerEvent) => {
      if (event.target instanceof Node && !root.current?.contains(event.target)) close(false);
    };
    document.addEventListener("pointerdown", closeOnOutsideClick);
    return () => document.removeEventListener("pointerdown", closeOnOutsideClick);
  }, [isOpen.value]);
  const onKeyDown = (event: KeyboardEvent) => {
    const menuItems = [...(root.current?.querySelectorAll<HTMLElement>("[role^=menuitem]") ?? [])];
    const focusedIndex = menuItems.findIndex((item) => item === document.activeElement);
    // The focus moves on to the next element.
    if (event.key === "Tab") close(false);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape" && isOpen.value) close(true);
    else if (step && isOpen.value)
      menuItems[(focusedIndex + step + menuItems.length) % menuItems.length]?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="menu" ref={root} onKeyDown={onKeyDown}>
      <button
        type="button"
        class="button quiet icon-only"
        ref={button}
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        aria-expanded={isOpen.value}
        onClick={() => (isOpen.value = !isOpen.value)}
      >
        {children}
      </button>
      {isOpen.value && (
        <div class="menu-list card" role="menu" aria-label={label}>
          {items.map((item) => (
            <button
              key={item.label}
              type="button"
              role={item.checked === undefined ? "menuitem" : "menuitemcheckbox"}
              aria-checked={item.checked}
              disabled={item.disabled}
              tabIndex={-1}
              onClick={() => {
                close(true);
                item.onSelect();
              }}
            >
              <span class="menu-check" aria-hidden="true">
                {item.checked ? "✓" : ""}
              </span>
              {item.label}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
