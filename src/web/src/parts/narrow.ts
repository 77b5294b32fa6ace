/** The width of the screen, by the same limits as the styles. */
import { signal, type Signal } from "@preact/signals";

/** Returns a signal that is true while a media query matches. */
function matching(media: string): Signal<boolean> {
  const query = matchMedia(media);
  const matches = signal(query.matches);
  query.addEventListener("change", () => (matches.value = query.matches));
  return matches;
}

/** True while the screen is narrow. */
export const narrow = matching("(max-width: 760px)");

/** True while all controls of a time frame fit in one row with a button for each range. */
export const wide = matching("(min-width: 1400px)");
