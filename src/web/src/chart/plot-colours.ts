/** The theme's colours for canvases. */
import type { MarkColours } from "./marks";

export interface Colours extends MarkColours {
  muted: string;
  grid: string;
  heat: string;
}

/** Colours by theme, cached because reading styles makes the browser compute all styles. */
const coloursByTheme = new Map<string, Colours>();

/** Returns the colours of the current theme. */
export function readColours(): Colours {
  const theme = document.documentElement.dataset["theme"] ?? "";
  const colours = coloursByTheme.get(theme) ?? coloursFromStyles();
  coloursByTheme.set(theme, colours);
  return colours;
}

function coloursFromStyles(): Colours {
  const style = getComputedStyle(document.documentElement);
  const styleValue = (name: string) => style.getPropertyValue(name).trim();
  return {
    muted: styleValue("--muted"),
    grid: styleValue("--line"),
    heat: styleValue("--accent"),
    font: styleValue("--font"),
    background: styleValue("--surface"),
    hatch: styleValue("--line"),
    threshold: styleValue("--bad"),
    annotation: {
      user: styleValue("--accent"),
      agent_restart: styleValue("--muted"),
      host_reboot: styleValue("--bad"),
      gap: styleValue("--warn"),
    },
  };
}

export function withAlpha(colour: string, alpha: number): string {
  return (
    colour +
    Math.round(alpha * 255)
      .toString(16)
      .padStart(2, "0")
  );
}
