/** What a view shows when there is nothing to show: it loads, it failed, it is empty. */
import type { ComponentChildren } from "preact";
import { Icon } from "./icon";

export function Loading({ what = "" }: { what?: string }) {
  return (
    <div class="state" role="status">
      <span class="spinner" aria-hidden="true" />
      <p>Loading{what ? ` ${what}` : ""}…</p>
    </div>
  );
}

export function Failed({ message, children }: { message: string; children?: ComponentChildren }) {
  return (
    <div class="state failed" role="alert">
      <Icon name="warning" />
      <p>{message}</p>
      {children}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="state empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}
