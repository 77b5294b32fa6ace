/** The width of the screen, by the same limits as the styles. */
import { signal, type Signal } from "@preact/signals";

/** Whether a media query matches, followed as the window changes. */
function matching(media: string): Signal<boolean> {
  const query = matchMedia(media);
  const matches = signal(query.matches);
  query.addEventListener("change", () => (matches.value = query.matches));
  return matches;
}

/** Whether the screen is narrow. */
export const narrow = matching("(max-width: 760px)");

/** Whether all controls of a time frame fit in one row with a button for each range. */
export const wide = matching("(min-width: 1400px)");
