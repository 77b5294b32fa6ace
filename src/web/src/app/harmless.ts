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
    const node = vnode as { type: unknown; props: unknown };
    if (node.type === null && typeof node.props === "string") {
      node.props = harmless(node.props);
    } else if (typeof node.type === "string" && typeof node.props === "object" && node.props) {
      const props = node.props as Record<string, unknown>;
      for (const name of READ) {
        const text = props[name];
        if (typeof text === "string") props[name] = harmless(text);
      }
    }
    before?.(vnode);
  };
}
