/** A component that is loaded when it is first shown, or sooner. */
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { Failed, Loading } from "./states";

export interface Lazy {
  Component: ComponentType;
  /** Begins to load it; returns when it is there, or will not be. */
  start: () => Promise<void>;
}

export function lazy(load: () => Promise<ComponentType>): Lazy {
  const loaded = signal<ComponentType | undefined>(undefined);
  const failed = signal(false);
  let begun: Promise<void> | undefined;
  const start = () =>
    (begun ??= load().then(
      (component) => void (loaded.value = component),
      () => void (failed.value = true),
    ));
  function Component() {
    useLayoutEffect(() => void start(), []);
    const Loaded = loaded.value;
    if (Loaded) return <Loaded />;
    if (!failed.value) return <Loading />;
    return (
      <Failed message="This part of the page could not be loaded. Was the daemon upgraded?">
        <button type="button" onClick={() => location.reload()}>
          Load the page again
        </button>
      </Failed>
    );
  }
  return { Component, start };
}
