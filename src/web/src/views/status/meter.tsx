/** A bar that shows a share, in a warning colour when it is nearly full. */
import { levelOf } from "./shares";

export function Meter({ share, plain }: { share: number; plain?: boolean }) {
  const width = Math.max(0, Math.min(1, share)) * 100;
  return (
    <span class={`meter ${plain ? "accent" : levelOf(share)}`} aria-hidden="true">
      <span style={{ width: `${width}%` }} />
    </span>
  );
}
