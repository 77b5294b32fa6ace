import { expect, test } from "vitest";
import styles from "./tokens.css?raw";

test("what is dark by the system has the colours of what is dark by choice", () => {
  const [bySystem, byChoice] = [...styles.matchAll(/dark;\n([^}]*)\}/g)].map(([, colours = ""]) =>
    colours.replaceAll(/\s+/g, " ").trim(),
  );
  expect(bySystem).toContain("--bg");
  expect(bySystem).toBe(byChoice);
});
