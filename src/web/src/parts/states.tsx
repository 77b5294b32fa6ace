/** The states of a view without data: loading, failed, empty. */
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

interface FailedProps {
  message: string;
  /** Repeats the request. */
  onRetry?: (() => void) | undefined;
  children?: ComponentChildren;
}

export function Failed({ message, onRetry, children }: FailedProps) {
  return (
    <div class="state failed" role="alert">
      <Icon name="warning" />
      <p>{message}</p>
      {onRetry && (
        <button type="button" class="button" onClick={onRetry}>
          Retry
        </button>
      )}
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
