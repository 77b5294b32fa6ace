/** Content wider than a small screen: it scrolls horizontally, with the mouse or by keys. */
import type { ComponentChildren } from "preact";

export function ScrollX({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div class="scroll-x" role="region" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}
