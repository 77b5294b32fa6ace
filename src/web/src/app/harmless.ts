/** Escapes control characters in all texts of the page: anyone may have chosen the names. */
import { options } from "preact";
import { escapeReordering } from "../model/harmless";

/** Attributes that people read. */
const READ_ATTRIBUTES = ["title", "aria-label"] as const;

/** Starts escaping; called before the page is drawn. */
export function escapeAllTexts() {
  const previousHook = options.vnode?.bind(options);
  options.vnode = (vnode) => {
    // A text node has no type; its `props` are the text itself.
    const node = vnode as { type: unknown; props: unknown };
    if (node.type === null && typeof node.props === "string") {
      node.props = escapeReordering(node.props);
    } else if (typeof node.type === "string" && typeof node.props === "object" && node.props) {
      const props = node.props as Record<string, unknown>;
      for (const name of READ_ATTRIBUTES) {
        const text = props[name];
        if (typeof text === "string") props[name] = escapeReordering(text);
      }
    }
    previousHook?.(vnode);
  };
}
