/** The theme's colours for canvases. */
import type { MarkColours } from "./marks";

export interface Colours extends MarkColours {
  muted: string;
  line: string;
}

/** Colours by theme, cached because reading styles makes the browser compute all styles. */
const known = new Map<string, Colours>();

/** Reads the current styles. */
export function readColours(): Colours {
  const theme = document.documentElement.dataset["theme"] ?? "";
  const colours = known.get(theme) ?? fromStyles();
  known.set(theme, colours);
  return colours;
}

function fromStyles(): Colours {
  const style = getComputedStyle(document.documentElement);
  const read = (name: string) => style.getPropertyValue(name).trim();
  return {
    muted: read("--muted"),
    line: read("--line"),
    font: read("--font"),
    ground: read("--surface"),
    hatch: read("--line"),
    threshold: read("--bad"),
    annotation: {
      user: read("--accent"),
      agent_restart: read("--muted"),
      host_reboot: read("--bad"),
      gap: read("--warn"),
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
