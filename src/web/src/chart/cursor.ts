/**
 * The pointed time, shared by all charts of a view. Charts are notified once a frame and outside of
 * components, so that moving the mouse renders nothing.
 */

export interface PointedTime {
  time: number;
  /** The chart under the pointer. */
  source: object;
  /** True if the keyboard moves the pointed time. */
  byKeys: boolean;
}

/** A chart that follows the pointed time. */
export interface Follower {
  /** A chart off screen does not follow. */
  isOnScreen: () => boolean;
  /** Moves its line, at once in all charts. */
  move: (pointed: PointedTime | null) => void;
  /** Writes its values: at once under the pointer, within a few frames elsewhere. */
  writeValues: (pointed: PointedTime | null) => void;
}

/**
 * Charts whose values are written in one frame, while the pointer moves and when it rests: a dozen
 * charts would take longer than a frame.
 */
const WRITES_PER_FRAME = { moving: 1, resting: 3 };

export class Cursor {
  private pointed: PointedTime | null = null;
  private readonly followers: Follower[] = [];
  /** Followers with outdated values, the longest wait first. */
  private outdated: Follower[] = [];
  private frame = 0;
  private isMoved = false;
  /** The time of the last move, on the browser's monotonic clock. */
  private movedAt = -Infinity;

  get at(): PointedTime | null {
    return this.pointed;
  }

  /** Returns true if the reader is reading a value, so that the window must not move. */
  isReading(patienceMs: number): boolean {
    return this.pointed !== null && performance.now() - this.movedAt < patienceMs;
  }

  move(pointed: PointedTime): void {
    this.pointed = pointed;
    this.movedAt = performance.now();
    this.notifySoon();
  }

  /** Shows the pointed time again after a chart received values: others may show some of them. */
  repeat(): void {
    if (this.pointed) this.notifySoon();
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
      this.outdated = this.outdated.filter((other) => other !== follower);
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
    const visible = this.followers.filter((other) => other.isOnScreen());
    if (isMoved) {
      for (const follower of visible) follower.move(pointed);
      const alreadyWaiting = new Set(this.outdated);
      this.outdated.push(...visible.filter((other) => !alreadyWaiting.has(other)));
    }
    const isSource = (follower: Follower) => follower === pointed?.source;
    for (const other of this.outdated.filter(isSource)) other.writeValues(pointed);
    const others = this.outdated.filter((other) => !isSource(other));
    const count = isMoved ? WRITES_PER_FRAME.moving : WRITES_PER_FRAME.resting;
    for (const other of others.splice(0, count)) other.writeValues(pointed);
    this.outdated = others;
    if (others.length > 0 && this.frame === 0) {
      this.frame = requestAnimationFrame(() => this.notify());
    }
  }
}
