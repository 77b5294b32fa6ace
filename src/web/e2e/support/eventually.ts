/** Polls for a condition until a deadline. */

const DEADLINE_MS = 30_000;
const PAUSE_MS = 20;

export async function eventually(
  what: string,
  holds: () => Promise<boolean> | boolean,
  deadlineMs = DEADLINE_MS,
): Promise<void> {
  const deadline = Date.now() + deadlineMs;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`${what}: not within ${deadlineMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}
