/**
 * The time that the reader points at: one for all charts of a view. It is told to them once a frame
 * and outside of components, so that moving the mouse renders nothing.
 */

export interface Pointed {
  time: number;
  /** The chart on which the pointer is. */
  source: object;
  /** Whether it is moved by keys. */
  byKeys: boolean;
}

type Listener = (pointed: Pointed | null) => void;

export class Cursor {
  private pointed: Pointed | null = null;
  private readonly listeners = new Set<Listener>();
  private frame = 0;
  /** When the pointer was last moved, on the browser's clock that never goes back. */
  private moved = -Infinity;

  get at(): Pointed | null {
    return this.pointed;
  }

  /** Whether somebody is reading a value just now: what they read should stay where it is. */
  isRead(patienceMs: number): boolean {
    return this.pointed !== null && performance.now() - this.moved < patienceMs;
  }

  move(pointed: Pointed): void {
    this.pointed = pointed;
    this.moved = performance.now();
    this.tellSoon();
  }

  /** The pointer has left a chart. */
  leave(source: object): void {
    if (this.pointed?.source !== source) return;
    this.pointed = null;
    this.tellSoon();
  }

  listen(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private tellSoon(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      for (const listener of this.listeners) listener(this.pointed);
    });
  }
}
