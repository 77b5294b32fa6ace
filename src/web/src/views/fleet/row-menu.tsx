/** The menu of actions on a host. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { navigate, hostPath, href } from "../../app/address";
import type { Host } from "../../api/types";
import { Icon } from "../../parts/icon";
import { isAway } from "./order";

interface Props {
  host: Host;
  isActive: boolean;
  remove: (host: string) => void;
}

export function RowMenu({ host, isActive, remove }: Props) {
  const isOpen = useSignal(false);
  const button = useRef<HTMLButtonElement>(null);
  // A row that is reused for another host closes the menu.
  useEffect(() => {
    isOpen.value = false;
  }, [host.host]);
  const close = (back: boolean) => {
    isOpen.value = false;
    if (back) button.current?.focus();
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        class="button quiet icon-only"
        tabIndex={isActive ? 0 : -1}
        aria-label={`Menu of ${host.host}`}
        aria-haspopup="menu"
        aria-expanded={isOpen.value}
        onClick={() => (isOpen.value = !isOpen.value)}
      >
        <Icon name="more" />
      </button>
      {isOpen.value && (
        <Items host={host} remove={remove} close={close} isLow={isLow(button.current)} />
      )}
    </>
  );
}

/** Returns true if there is more space above a button than below it. */
function isLow(button: HTMLElement | null): boolean {
  return (button?.getBoundingClientRect().bottom ?? 0) > innerHeight - 200;
}

interface ItemsProps {
  host: Host;
  remove: (host: string) => void;
  close: (back: boolean) => void;
  isLow: boolean;
}

function Items({ host, remove, close, isLow }: ItemsProps) {
  const menu = useRef<HTMLDivElement>(null);
  useEffect(() => {
    menu.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    const outside = (event: PointerEvent) => {
      const parent = menu.current?.parentElement;
      if (event.target instanceof Node && !parent?.contains(event.target)) close(false);
    };
    addEventListener("pointerdown", outside);
    return () => removeEventListener("pointerdown", outside);
  }, []);
  const onKeyDown = (event: KeyboardEvent) => {
    event.stopPropagation();
    if (event.key === "Escape" || event.key === "Tab") close(true);
    const items = [...(menu.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const place = items.findIndex((item) => item === document.activeElement);
    items[(place + step + items.length) % items.length]?.focus();
  };
  const mayRemove = isAway(host);
  return (
    <div
      ref={menu}
      class={isLow ? "menu-items card upward" : "menu-items card"}
      role="menu"
      aria-label={`Menu of ${host.host}`}
      onKeyDown={onKeyDown}
    >
      <button
        type="button"
        role="menuitem"
        tabIndex={-1}
        onClick={() => navigate(hostPath(host.host))}
      >
        Open charts
      </button>
      <button
        type="button"
        role="menuitem"
        tabIndex={-1}
        onClick={() => navigate(href("/storage", { tags: `host=${host.host}` }))}
      >
        Show in storage
      </button>
      <button
        type="button"
        role="menuitem"
        tabIndex={-1}
        aria-disabled={!mayRemove}
        title={mayRemove ? undefined : "The host still pings: stop its agent first"}
        onClick={() => {
          if (!mayRemove) return;
          close(false);
          remove(host.host);
        }}
      >
        Remove from the list…
      </button>
    </div>
  );
}
