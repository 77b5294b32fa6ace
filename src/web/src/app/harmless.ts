/** Texts of the page are drawn harmlessly, wherever they come from: names are anybody's. */
import { options } from "preact";
import { harmless } from "../model/harmless";

/** Attributes that are read, too. */
const READ = ["title", "aria-label"] as const;

/** From now on; before the page is drawn. */
export function drawHarmlessly() {
  const before = options.vnode?.bind(options);
  options.vnode = (vnode) => {
    // A text's own node has no type, and the text instead of properties.
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
