/** A card that stands out by its colour: a state, or a warning with its remedy. */
import type { ComponentChildren } from "preact";
import { Icon } from "./icon";

interface Props {
  tone: "good" | "warn" | "bad";
  /** The name of the card for screen readers. */
  label: string;
  title: string;
  children: ComponentChildren;
}

export function Callout({ tone, label, title, children }: Props) {
  return (
    <section class={`card callout ${tone}`} aria-label={label}>
      <Icon name={tone === "good" ? "check" : "warning"} />
      <div>
        <h2>{title}</h2>
        {children}
      </div>
    </section>
  );
}
