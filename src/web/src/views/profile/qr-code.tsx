/** A text as a QR code (ISO/IEC 18004), dark on light in both themes, as scanners expect it. */
import { generate } from "lean-qr/nano";
import { useMemo } from "preact/hooks";

/** The light margin in modules that the standard requires. */
const MARGIN = 4;

export function QrCode({ text, label }: { text: string; label: string }) {
  const { size, path } = useMemo(() => modulesOf(text), [text]);
  const side = size + 2 * MARGIN;
  return (
    <svg
      class="qr-code"
      viewBox={`${-MARGIN} ${-MARGIN} ${side} ${side}`}
      role="img"
      aria-label={label}
      shape-rendering="crispEdges"
    >
      <path d={path} />
    </svg>
  );
}

/** The dark modules as a path of squares. */
function modulesOf(text: string): { size: number; path: string } {
  const code = generate(text);
  let path = "";
  for (let y = 0; y < code.size; y++) {
    for (let x = 0; x < code.size; x++) if (code.get(x, y)) path += `M${x} ${y}h1v1h-1z`;
  }
  return { size: code.size, path };
}
