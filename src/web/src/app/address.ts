/**
 * The address: the current view and its state. Views read parameters from it and write them to it,
 * so that an address shows the same to everyone.
 */
import { computed, signal } from "@preact/signals";
import { mayLeave } from "./guard";

export interface Address {
  path: string;
  params: URLSearchParams;
}

function readAddress(): Address {
  return { path: location.pathname, params: new URLSearchParams(location.search) };
}

export const address = signal<Address>(readAddress());

/** Handles the browser's navigation, and links within the page. */
export function handleNavigation(): void {
  addEventListener("popstate", () => {
    const { path, params } = address.peek();
    if (location.pathname === path || mayLeave()) address.value = readAddress();
    else history.pushState(null, "", params.size > 0 ? `${path}?${params.toString()}` : path);
  });
  document.addEventListener("click", (event) => {
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey;
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!isPlain || event.defaultPrevented || !link || link.origin !== location.origin) return;
    if (link.target || link.hasAttribute("download") || link.pathname.startsWith("/api/")) return;
    // The browser handles links within the current view.
    if (link.hash && link.pathname === location.pathname) return;
    event.preventDefault();
    navigate(link.pathname + link.search);
  });
}

/** Opens a view; `replace` adds no step to the browser's history. */
export function navigate(url: string, options: { replace?: boolean } = {}): void {
  const currentUrl = location.pathname + location.search;
  if (url === currentUrl) return;
  const [path = ""] = url.split("?");
  if (path !== location.pathname && !mayLeave()) return;
  if (options.replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  const isOtherView = address.peek().path !== location.pathname;
  address.value = readAddress();
  if (isOtherView) scrollTo(0, 0);
}

/** Changes parameters of the address; `undefined` and "" remove a parameter. */
export function setParams(
  changes: Record<string, string | undefined>,
  options: { replace?: boolean } = {},
): void {
  const params = new URLSearchParams(address.peek().params);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === "") params.delete(name);
    else params.set(name, value);
  }
  const search = params.toString();
  navigate(address.peek().path + (search ? `?${search}` : ""), options);
}

/** A parameter as a signal; `fallback` when the address lacks it. */
export function param(name: string, fallback = "") {
  return computed(() => address.value.params.get(name) ?? fallback);
}

/** The address of a host's view. */
export function hostPath(host: string): string {
  return `/hosts/${encodeURIComponent(host)}`;
}

/** The address of a view with these parameters. */
export function href(path: string, params: Record<string, string | undefined> = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) if (value) search.set(name, value);
  return search.size > 0 ? `${path}?${search.toString()}` : path;
}
