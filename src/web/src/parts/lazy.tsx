/** A component that is loaded when it is first shown. */
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { Failed, Loading } from "./states";

export function lazy(load: () => Promise<ComponentType>): ComponentType {
  const loaded = signal<ComponentType | undefined>(undefined);
  const failed = signal(false);
  return function Lazy() {
    useEffect(() => {
      if (loaded.peek()) return;
      load().then(
        (component) => (loaded.value = component),
        () => (failed.value = true),
      );
    }, []);
    const Component = loaded.value;
    if (Component) return <Component />;
    if (!failed.value) return <Loading />;
    return (
      <Failed message="This part of the page could not be loaded. Was the daemon upgraded?">
        <button type="button" onClick={() => location.reload()}>
          Load the page again
        </button>
      </Failed>
    );
  };
}
