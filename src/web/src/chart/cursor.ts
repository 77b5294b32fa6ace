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

/** A chart that follows the pointed time. */
export interface Follower {
  /** What is not on the screen follows nothing. */
  isOnScreen: () => boolean;
  /** Moves its line: at once in all charts. */
  move: (pointed: Pointed | null) => void;
  /** Writes its values: at once where the pointer is, elsewhere within some frames. */
  read: (pointed: Pointed | null) => void;
}

/**
 * Charts without the pointer whose values are written in a frame, while it moves and when it rests:
 * those of a dozen charts at once would take longer than a frame has.
 */
const READ_IN_A_FRAME = { moving: 1, resting: 3 };

export class Cursor {
  private pointed: Pointed | null = null;
  private readonly followers: Follower[] = [];
  /** Followers whose values are not written yet, the one that waits longest first. */
  private waiting: Follower[] = [];
  private frame = 0;
  private isMoved = false;
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

  follow(follower: Follower): () => void {
    this.followers.push(follower);
    return () => {
      this.followers.splice(this.followers.indexOf(follower), 1);
      this.waiting = this.waiting.filter((one) => one !== follower);
    };
  }

  private tellSoon(): void {
    this.isMoved = true;
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.tell());
  }

  private tell(): void {
    this.frame = 0;
    const { pointed, isMoved } = this;
    this.isMoved = false;
    const seen = this.followers.filter((one) => one.isOnScreen());
    if (isMoved) {
      for (const follower of seen) follower.move(pointed);
      const waited = new Set(this.waiting);
      this.waiting.push(...seen.filter((one) => !waited.has(one)));
    }
    const isNow = (follower: Follower) => follower === pointed?.source;
    for (const one of this.waiting.filter(isNow)) one.read(pointed);
    const others = this.waiting.filter((one) => !isNow(one));
    const count = isMoved ? READ_IN_A_FRAME.moving : READ_IN_A_FRAME.resting;
    for (const one of others.splice(0, count)) one.read(pointed);
    this.waiting = others;
    if (others.length > 0 && this.frame === 0) {
      this.frame = requestAnimationFrame(() => this.tell());
    }
  }
}
