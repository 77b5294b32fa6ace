/** The preferences of this browser: theme and time zone. Everything else is in the address. */
import { computed, effect, signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";

export function stored(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export function store(key: string, value: string) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Without storage, the choice lasts until the page is closed.
  }
}

const THEMES: readonly string[] = ["auto", "light", "dark"];
const first = stored("theme");
export const theme = signal<Theme>(THEMES.includes(first ?? "") ? (first as Theme) : "auto");

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const systemIsDark = signal(prefersDark.matches);
prefersDark.addEventListener("change", () => (systemIsDark.value = prefersDark.matches));

/** Whether the page is dark: charts draw their own colours. */
export const isDark = computed(() =>
  theme.value === "auto" ? systemIsDark.value : theme.value === "dark",
);

export const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The zone of all times and days; the address may name another. */
export const preferredZone = signal(stored("zone") ?? browserZone);

export function keepPreferences(): void {
  effect(() => {
    document.documentElement.dataset["theme"] = isDark.value ? "dark" : "light";
    store("theme", theme.value);
  });
  effect(() => store("zone", preferredZone.value));
}
