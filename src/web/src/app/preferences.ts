/** Theme and time zone, which this browser remembers, and access to its storage. */
import { computed, effect, signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";

export function readStored(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export function writeStored(key: string, value: string) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // When the browser refuses storage, the choice lasts until the page is closed.
  }
}

const THEMES: readonly string[] = ["auto", "light", "dark"];
const storedTheme = readStored("theme");
export const theme = signal<Theme>(
  THEMES.includes(storedTheme ?? "") ? (storedTheme as Theme) : "auto",
);

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const systemIsDark = signal(prefersDark.matches);
prefersDark.addEventListener("change", () => (systemIsDark.value = prefersDark.matches));

/** True for the dark theme; charts choose their colours by it. */
export const isDark = computed(() =>
  theme.value === "auto" ? systemIsDark.value : theme.value === "dark",
);

export const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The zone that was chosen last; a zone in the address of a view overrides it there. */
export const preferredZone = signal(readStored("zone") ?? browserZone);

/** Applies the theme, and stores both preferences whenever they change. */
export function applyAndStorePreferences(): void {
  effect(() => {
    document.documentElement.dataset["theme"] = isDark.value ? "dark" : "light";
    writeStored("theme", theme.value);
  });
  effect(() => writeStored("zone", preferredZone.value));
}
