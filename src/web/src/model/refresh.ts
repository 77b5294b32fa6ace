/** The interval of refreshing charts. Pure. */

/** The intervals that the address may name; `off` pauses refreshing. */
export const REFRESH_CHOICES = ["10s", "30s", "1m", "5m", "off"] as const;
export type RefreshChoice = (typeof REFRESH_CHOICES)[number];

const CHOSEN_MS = { "10s": 10_000, "30s": 30_000, "1m": 60_000, "5m": 300_000, off: undefined };
/** The bounds of the interval without a choice, which is a sixth of a slot. */
const SIXTH_MS = { min: 10_000, max: 60_000 };

/** The choice that the address names; `undefined` for none, and for other words. */
export function refreshChoiceOf(word: string | null): RefreshChoice | undefined {
  return REFRESH_CHOICES.find((choice) => choice === word);
}

/** The time from one refresh to the next; `undefined` while refreshing is paused. */
export function refreshInterval(
  choice: RefreshChoice | undefined,
  slotMs: number,
): number | undefined {
  if (choice !== undefined) return CHOSEN_MS[choice];
  return Math.min(Math.max(slotMs / 6, SIXTH_MS.min), SIXTH_MS.max);
}
