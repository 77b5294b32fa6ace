/** Whether the screen is a small one, as the styles have it. */
import { signal } from "@preact/signals";

const query = matchMedia("(max-width: 760px)");
export const narrow = signal(query.matches);
query.addEventListener("change", () => (narrow.value = query.matches));
