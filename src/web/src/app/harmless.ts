/** Escapes control characters in all texts of the page: names come from anyone. */
import { options } from "preact";
import { harmless } from "../model/harmless";

/** Attributes that people read. */
const READ = ["title", "aria-label"] as const;

/** Starts escaping; called before the page is drawn. */
export function drawHarmlessly() {
  const before = options.vnode?.bind(options);
  options.vnode = (vnode) => {
    // A text node has no type, and its text in place of properties.
    const own = vnode as { type: unknown; props: unknown };
    if (own.type === null && typeof own.props === "string") {
      own.props = harmless(own.props);
    } else if (typeof own.type === "string" && typeof own.props === "object" && own.props) {
      const props = own.props as Record<string, unknown>;
      for (const name of READ) {
        const text = props[name];
        if (typeof text === "string") props[name] = harmless(text);
      }
    }
    before?.(vnode);
  };
}
