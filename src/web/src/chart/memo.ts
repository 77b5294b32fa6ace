/** A component that renders only when a prop changes. */
import { Component, h, type FunctionComponent } from "preact";

export function memo<P extends object>(inner: FunctionComponent<P>): FunctionComponent<P> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P>): boolean {
      const now = this.props as Record<string, unknown>;
      return Object.entries(next).some(([name, value]) => now[name] !== value);
    }
    override render() {
      return h(inner, this.props);
    }
  }
  return Memo as unknown as FunctionComponent<P>;
}
