/** A component that is loaded when it is first shown, or sooner, and again until that succeeds. */
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { awaySince, whenBack } from "../api/client";
import { Failed, Loading } from "./states";

export interface Lazy {
  Component: ComponentType;
  /** Begins to load it; returns when it is there, or could not be loaded. */
  start: () => Promise<void>;
}

/** How long it waits after a failure: twice as long each time, up to the last. */
const AGAIN_MS = { min: 1000, max: 15_000 };
/** After so many failures beside a daemon that answers the page is loaded again, but not all the time. */
const FAILURES_MAX = 3;
const RELOAD_AFTER_MS = 60_000;

export function lazy(load: () => Promise<ComponentType>): Lazy {
  const loaded = signal<ComponentType | undefined>(undefined);
  /** How often in a row it could not be loaded. */
  const failures = signal(0);
  let begun: Promise<void> | undefined;
  const start = () =>
    (begun ??= load().then(
      (component) => void (loaded.value = component),
      () => {
        begun = undefined;
        failures.value += 1;
      },
    ));
  function Component() {
    useLayoutEffect(() => void start(), []);
    const Loaded = loaded.value;
    if (Loaded) return <Loaded />;
    if (failures.value === 0) return <Loading />;
    return <Missing failures={failures.value} start={() => void start()} />;
  }
  return { Component, start };
}

interface MissingProps {
  failures: number;
  start: () => void;
}

/**
 * Another page would have it: the files of this one went with an upgrade, or the browser remembers that
 * they were not there. Nothing is lost, as nothing is shown yet.
 */
function loadPageAgain(): void {
  const [navigation] = performance.getEntriesByType("navigation");
  const isFresh = (navigation as PerformanceNavigationTiming | undefined)?.type === "reload";
  if (!isFresh || performance.now() > RELOAD_AFTER_MS) location.reload();
}

/** Stands where the component will be, and tries again: soon, and when the daemon is back. */
function Missing({ failures, start }: MissingProps) {
  useEffect(() => {
    if (failures >= FAILURES_MAX && awaySince.peek() === null) loadPageAgain();
    const pause = Math.min(AGAIN_MS.min * 2 ** (failures - 1), AGAIN_MS.max);
    const timer = setTimeout(start, pause);
    return () => clearTimeout(timer);
  }, [failures]);
  useEffect(() => whenBack(start), []);
  const isAway = awaySince.value !== null;
  return (
    <section class="card">
      <Failed
        message={
          isAway
            ? "This part of the page is not loaded yet. It will be as soon as the daemon answers."
            : "This part of the page could not be loaded; it is tried again. If the daemon was upgraded, load the page again."
        }
      >
        <div class="state-actions">
          <button type="button" class="button" onClick={start}>
            Try again
          </button>
          <button type="button" class="button" onClick={() => location.reload()}>
            Load the page again
          </button>
        </div>
      </Failed>
    </section>
  );
}
