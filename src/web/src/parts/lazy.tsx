/** A component that is loaded when first shown, or earlier, with retries. */
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { awaySince, onDaemonBack } from "../api/client";
import { Failed, Loading } from "./states";

export interface Lazy {
  Component: ComponentType;
  /** Starts loading; resolves when it is loaded or has failed. */
  start: () => Promise<void>;
}

/** The pause after a failure, doubled for each failure up to the maximum. */
const RETRY_PAUSE_MS = { min: 1000, max: 15_000 };
/** The page reloads after this many failures while the daemon answers, but not repeatedly. */
const FAILURES_MAX = 3;
const RELOAD_AFTER_MS = 60_000;

export function lazy(load: () => Promise<ComponentType>): Lazy {
  const loaded = signal<ComponentType | undefined>(undefined);
  /** Consecutive failures. */
  const failures = signal(0);
  let loading: Promise<void> | undefined;
  const start = () =>
    (loading ??= load().then(
      (component) => void (loaded.value = component),
      () => {
        loading = undefined;
        failures.value += 1;
      },
    ));
  function Component() {
    useLayoutEffect(() => void start(), []);
    const Loaded = loaded.value;
    if (Loaded) return <Loaded />;
    if (failures.value === 0) return <Loading />;
    return <RetryPlaceholder failures={failures.value} start={() => void start()} />;
  }
  return { Component, start };
}

interface RetryProps {
  failures: number;
  start: () => void;
}

/**
 * Reloads the page: an upgrade may have removed its files, or the browser remembers that the files
 * were missing. Nothing is lost, because nothing is shown yet.
 */
function reloadPage(): void {
  const [navigation] = performance.getEntriesByType("navigation");
  const isFresh = (navigation as PerformanceNavigationTiming | undefined)?.type === "reload";
  if (!isFresh || performance.now() > RELOAD_AFTER_MS) location.reload();
}

/** A placeholder that retries: after a pause, and when the daemon answers again. */
function RetryPlaceholder({ failures, start }: RetryProps) {
  useEffect(() => {
    if (failures >= FAILURES_MAX && awaySince.peek() === null) reloadPage();
    const pause = Math.min(RETRY_PAUSE_MS.min * 2 ** (failures - 1), RETRY_PAUSE_MS.max);
    const timer = setTimeout(start, pause);
    return () => clearTimeout(timer);
  }, [failures]);
  useEffect(() => onDaemonBack(start), []);
  const isAway = awaySince.value !== null;
  return (
    <section class="card">
      <Failed
        message={
          isAway
            ? "This part of the page loads as soon as the daemon answers."
            : "This part of the page could not be loaded. The page retries; after an upgrade of the daemon, reload it."
        }
      >
        <div class="state-actions">
          <button type="button" class="button" onClick={start}>
            Retry
          </button>
          <button type="button" class="button" onClick={() => location.reload()}>
            Reload page
          </button>
        </div>
      </Failed>
    </section>
  );
}
