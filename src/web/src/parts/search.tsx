/** A field that filters a list, with its text in the address. */
import { useEffect, useRef } from "preact/hooks";
import { setParams } from "../app/address";
import { Icon } from "./icon";

interface Props {
  label: string;
  placeholder: string;
  /** The address parameter, and its current value. */
  param: string;
  text: string;
  class?: string;
  /** The key that focuses the field. */
  shortcut?: string;
}

export function Search({ label, placeholder, param, text, class: extra = "", shortcut }: Props) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const focus = (event: KeyboardEvent) => {
      const target = event.target instanceof HTMLElement ? event.target : undefined;
      const isWriting = target?.closest("input, textarea, select, dialog, [contenteditable]");
      if (event.key !== shortcut || isWriting || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      input.current?.focus();
    };
    addEventListener("keydown", focus);
    return () => removeEventListener("keydown", focus);
  }, [shortcut]);
  return (
    <label class={`search ${extra}`}>
      <Icon name="search" />
      <input
        ref={input}
        type="search"
        aria-label={label}
        placeholder={placeholder}
        value={text}
        aria-keyshortcuts={shortcut}
        onInput={(event) => setParams({ [param]: event.currentTarget.value }, { replace: true })}
      />
      {shortcut && <kbd aria-hidden="true">{shortcut}</kbd>}
    </label>
  );
}
