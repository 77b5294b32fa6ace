/** Whether the screen is narrow, by the same width as the styles. */
import { signal } from "@preact/signals";

const query = matchMedia("(max-width: 760px)");
export const narrow = signal(query.matches);
query.addEventListener("change", () => (narrow.value = query.matches));
