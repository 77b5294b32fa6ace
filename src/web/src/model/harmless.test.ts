import { expect, it } from "vitest";
import { escapeReordering } from "./harmless";

it("escapes characters that would reverse a name, and nothing else", () => {
  expect(escapeReordering("web\u202egnp.exe")).toBe("web\\u{202e}gnp.exe");
  expect(escapeReordering("\u2066a\u2069\ufeff")).toBe("\\u{2066}a\\u{2069}\\u{feff}");
  const plain = "größe in m³ שלום <img> \\u{202e}";
  expect(escapeReordering(plain)).toBe(plain);
});
