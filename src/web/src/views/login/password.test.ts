import { expect, it } from "vitest";
import { passwordFault, passwordFrom } from "./password";

it("refuses short passwords and passwords that differ", () => {
  expect(passwordFault("elevenchars", "elevenchars")).toContain("12 characters");
  expect(passwordFault("twelve chars", "twelve chars")).toBeUndefined();
  expect(passwordFault("twelve chars", "twelve chars ")).toContain("differ");
  expect(passwordFault("🌾".repeat(11), "🌾".repeat(11)), "characters, not units").toBeDefined();
});

it("makes passwords whose letters are equally likely", () => {
  const password = passwordFrom(Uint8Array.from({ length: 20 }, (_, k) => k * 13));
  expect(password).toMatch(/^[a-z0-9]{5}(-[a-z0-9]{5}){3}$/);
  const all = passwordFrom(Uint8Array.from({ length: 256 }, (_, k) => k)).replaceAll("-", "");
  const counts = new Map<string, number>();
  for (const letter of all) counts.set(letter, (counts.get(letter) ?? 0) + 1);
  expect([...counts.values()]).toEqual(Array(32).fill(8));
});
