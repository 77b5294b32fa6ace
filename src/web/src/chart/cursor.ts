/**
 * The pointed time, shared by all charts of a view. Charts are notified once a frame and outside of
 * components, so that moving the mouse renders nothing.
 */

export interface PointedTime {
  time: number;
  /** The chart under the pointer. */
  source: object;
  /** Whether the keyboard moves it. */
  byKeys: boolean;
}

/** A chart that follows the pointed time. */
export interface Follower {
  /** A chart off screen does not follow. */
  isOnScreen: () => boolean;
  /** Moves its line, at once in all charts. */
  move: (pointed: PointedTime | null) => void;
  /** Writes its values: at once under the pointer, within some frames elsewhere. */
  read: (pointed: PointedTime | null) => void;
}

/**
 * Charts whose values are written in one frame, while the pointer moves and when it rests: a dozen
 * charts would take longer than a frame.
 */
const READ_IN_A_FRAME = { moving: 1, resting: 3 };

export class Cursor {
  private pointed: PointedTime | null = null;
  private readonly followers: Follower[] = [];
  /** Followers with outdated values, the longest wait first. */
  private waiting: Follower[] = [];
  private frame = 0;
  private isMoved = false;
  /** The time of the last move, on the browser's monotonic clock. */
  private moved = -Infinity;

  get at(): PointedTime | null {
    return this.pointed;
  }

  /** Whether the reader is reading a value, so that the window must not move. */
  isRead(patienceMs: number): boolean {
    return this.pointed !== null && performance.now() - this.moved < patienceMs;
  }

  move(pointed: PointedTime): void {
    this.pointed = pointed;
    this.moved = performance.now();
    this.notifySoon();
  }

  /** The pointer left a chart. */
  leave(source: object): void {
    if (this.pointed?.source !== source) return;
    this.pointed = null;
    this.notifySoon();
  }

  follow(follower: Follower): () => void {
    this.followers.push(follower);
    return () => {
      this.followers.splice(this.followers.indexOf(follower), 1);
      this.waiting = this.waiting.filter((other) => other !== follower);
    };
  }

  private notifySoon(): void {
    this.isMoved = true;
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.notify());
  }

  private notify(): void {
    this.frame = 0;
    const { pointed, isMoved } = this;
    this.isMoved = false;
    const seen = this.followers.filter((other) => other.isOnScreen());
    if (isMoved) {
      for (const follower of seen) follower.move(pointed);
      const waited = new Set(this.waiting);
      this.waiting.push(...seen.filter((other) => !waited.has(other)));
    }
    const isNow = (follower: Follower) => follower === pointed?.source;
    for (const other of this.waiting.filter(isNow)) other.read(pointed);
    const others = this.waiting.filter((other) => !isNow(other));
    const count = isMoved ? READ_IN_A_FRAME.moving : READ_IN_A_FRAME.resting;
    for (const other of others.splice(0, count)) other.read(pointed);
    this.waiting = others;
    if (others.length > 0 && this.frame === 0) {
      this.frame = requestAnimationFrame(() => this.notify());
    }
  }
}
