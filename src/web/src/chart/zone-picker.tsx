/** A picker for all time zones that the browser knows, with a search. */
import { useSignal } from "@preact/signals";
import { useEffect, useId, useRef } from "preact/hooks";
import { browserZone } from "../app/preferences";
import { isZone, offsetText } from "../model/zone";
import { Icon } from "../parts/icon";
import { now } from "../api/client";

/** The maximum number of names listed at a time. */
const LISTED_MAX = 60;

/** All zones, UTC and the browser's own first. */
function allZones(): string[] {
  const first = [...new Set(["UTC", browserZone])];
  return [...first, ...Intl.supportedValuesOf("timeZone").filter((zone) => !first.includes(zone))];
}

/** The zones that contain every word of a text. */
export function matchingZones(all: readonly string[], text: string): string[] {
  const words = text
    .toLowerCase()
    .split(/[\s_/]+/)
    .filter(Boolean);
  return all.filter((zone) => words.every((word) => zone.toLowerCase().includes(word)));
}

/** The last part of a zone's name: `Berlin`. */
function placeOf(zone: string): string {
  return (zone.split("/").at(-1) ?? zone).replaceAll("_", " ");
}

export function ZonePicker({ zone, onChoose }: { zone: string; onChoose: (zone: string) => void }) {
  const isOpen = useSignal(false);
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isOpen.value) return;
    const closeOnOutsideClick = (event: PointerEvent) => {
      if (event.target instanceof Node && !root.current?.contains(event.target))
        isOpen.value = false;
    };
    document.addEventListener("pointerdown", closeOnOutsideClick);
    return () => document.removeEventListener("pointerdown", closeOnOutsideClick);
  }, [isOpen.value]);
  return (
    <div class="menu zone" ref={root}>
      <button
        type="button"
        class="button"
        aria-label={`Time zone: ${zone}`}
        title={`Time zone: ${zone}`}
        aria-haspopup="dialog"
        aria-expanded={isOpen.value}
        onClick={() => (isOpen.value = !isOpen.value)}
      >
        {placeOf(zone)}
        <Icon name="down" />
      </button>
      {isOpen.value && (
        <ZoneList
          zone={zone}
          onChoose={(chosen) => {
            isOpen.value = false;
            root.current?.querySelector("button")?.focus();
            if (chosen) onChoose(chosen);
          }}
        />
      )}
    </div>
  );
}

interface ZoneListProps {
  zone: string;
  /** Called with `undefined` when the list is closed without a choice. */
  onChoose: (zone: string | undefined) => void;
}

function ZoneList({ zone, onChoose }: ZoneListProps) {
  const id = useId();
  const text = useSignal("");
  const activeIndex = useSignal(0);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const matches = matchingZones(allZones(), text.value).slice(0, LISTED_MAX);
  const active = matches[activeIndex.value];
  const move = (steps: number) => {
    activeIndex.value = Math.min(Math.max(activeIndex.value + steps, 0), matches.length - 1);
    document.getElementById(`${id}-${activeIndex.value}`)?.scrollIntoView({ block: "nearest" });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(-1);
    else if (event.key === "Enter" && active) onChoose(active);
    else if (event.key === "Escape") onChoose(undefined);
    else return;
    event.preventDefault();
  };
  return (
    <div class="menu-list card zone-list" role="dialog" aria-label="Time zone">
      <input
        type="text"
        ref={field}
        role="combobox"
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={active ? `${id}-${activeIndex.value}` : undefined}
        aria-label="Search time zones"
        placeholder="Search, such as Berlin"
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          activeIndex.value = 0;
        }}
        onKeyDown={onKeyDown}
      />
      <ul role="listbox" id={`${id}-list`} aria-label="Time zones">
        {matches.map((name, k) => (
          <li
            key={name}
            id={`${id}-${k}`}
            role="option"
            aria-selected={name === zone}
            class={k === activeIndex.value ? "is-active" : undefined}
            onClick={() => onChoose(name)}
          >
            <span>{name.replaceAll("_", " ")}</span>
            <span class="num muted">{isZone(name) ? offsetText(name, now()) : ""}</span>
          </li>
        ))}
        {matches.length === 0 && <li class="muted">No matching time zone</li>}
      </ul>
    </div>
  );
}
