/** Copies texts to the clipboard. */

/**
 * Copies a text, even when the page is served without https; returns false when the browser does
 * not permit it.
 */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelection(text);
  }
}

/** The only way on plain http, where pages cannot use the clipboard API. */
function copySelection(text: string): boolean {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "hidden-text";
  // Nothing outside of an open dialog can be selected.
  const topDialog = [...document.querySelectorAll("dialog[open]")].at(-1);
  (topDialog ?? document.body).append(field);
  const focused = document.activeElement;
  field.select();
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  const isCopied = document.execCommand("copy");
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return isCopied;
}
