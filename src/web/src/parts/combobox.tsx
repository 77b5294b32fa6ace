/** A field that searches while the reader types, with keyboard control (ARIA's combobox). */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import "../styles/combobox.css";
import { Icon } from "./icon";

export interface FoundItems<T> {
  total: number;
  items: T[];
}

interface Props<T> {
  label: string;
  /** The current choice. */
  value: string;
  placeholder: string;
  /** The name of the items, in the plural. */
  noun: string;
  find: (text: string, signal: AbortSignal) => Promise<FoundItems<T>>;
  keyOf: (item: T) => string;
  render: (item: T) => ComponentChildren;
  onChoose: (item: T) => void;
  autoFocus?: boolean;
}

const SEARCH_DELAY_MS = 120;

export function Combobox<T>(props: Props<T>) {
  const { label, value, placeholder, noun, keyOf } = props;
  const id = useId();
  const text = useSignal<string | undefined>(undefined);
  const active = useSignal(0);
  const list = useRef<HTMLUListElement>(null);
  const matches = useMatches(text.value, props.find);
  const isOpen = text.value !== undefined;
  const items = matches?.items ?? [];

  const choose = (item: T | undefined) => {
    if (item === undefined) return;
    text.value = undefined;
    props.onChoose(item);
  };
  const moveActive = (steps: number) => {
    if (!isOpen) text.value = "";
    else if (items.length > 0) active.value = (active.value + steps + items.length) % items.length;
    list.current?.children[active.value]?.scrollIntoView({ block: "nearest" });
  };
  const keyActions: Record<string, () => void> = {
    ArrowDown: () => moveActive(1),
    ArrowUp: () => moveActive(-1),
    Enter: () => choose(isOpen ? items[active.value] : undefined),
    Escape: () => (text.value = undefined),
  };

  return (
    <div class="combobox">
      <Icon name="search" />
      <input
        type="text"
        role="combobox"
        aria-label={label}
        aria-expanded={isOpen}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={isOpen && items.length > 0 ? `${id}-${active.value}` : undefined}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        autofocus={props.autoFocus ?? false}
        placeholder={placeholder}
        value={text.value ?? value}
        title={value}
        onFocus={(event) => event.currentTarget.select()}
        onClick={() => (text.value ??= "")}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          active.value = 0;
        }}
        onBlur={() => (text.value = undefined)}
        onKeyDown={(event) => {
          const action = keyActions[event.key];
          if (!action || event.isComposing || (event.key === "Escape" && !isOpen)) return;
          event.preventDefault();
          event.stopPropagation();
          action();
        }}
      />
      <div class="combobox-list" hidden={!isOpen}>
        <ul id={`${id}-list`} role="listbox" aria-label={noun} ref={list}>
          {items.map((item, index) => (
            <li
              key={keyOf(item)}
              id={`${id}-${index}`}
              role="option"
              aria-selected={index === active.value}
              // The field keeps the focus.
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => choose(item)}
              onMouseMove={() => (active.value = index)}
            >
              {props.render(item)}
            </li>
          ))}
        </ul>
        <p class="combobox-count" role="status">
          {isOpen ? countText(matches, text.value ?? "", noun) : ""}
        </p>
      </div>
    </div>
  );
}

function countText<T>(matches: MatchesState<T> | undefined, text: string, noun: string): string {
  if (!matches) return "Searching…";
  if (matches.failure) return matches.failure;
  if (matches.total === 0) return text ? `No ${noun} match “${text}”` : `No ${noun} yet`;
  const all = matches.total.toLocaleString();
  return matches.items.length < matches.total
    ? `The best ${matches.items.length} of ${all} ${noun}: type more of the name`
    : `${all} ${noun}`;
}

interface MatchesState<T> extends FoundItems<T> {
  failure?: string;
}

/** The newest answer; the previous answer stays until it arrives. */
function useMatches<T>(
  text: string | undefined,
  find: Props<T>["find"],
): MatchesState<T> | undefined {
  const matches = useSignal<MatchesState<T> | undefined>(undefined);
  const isOpen = text !== undefined;
  useEffect(() => {
    if (text === undefined) return;
    const abort = new AbortController();
    const search = async () => {
      try {
        const answer = await find(text, abort.signal);
        if (!abort.signal.aborted) matches.value = answer;
      } catch (cause) {
        if (abort.signal.aborted) return;
        const failure = cause instanceof Error ? cause.message : String(cause);
        matches.value = { total: 0, items: [], failure: failure };
      }
    };
    const timer = setTimeout(() => void search(), matches.peek() ? SEARCH_DELAY_MS : 0);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text]);
  useEffect(() => {
    if (!isOpen) matches.value = undefined;
  }, [isOpen]);
  return matches.value;
}
