/** Files of the page and of its tests import each other in one direction. */
import { preProcessFile } from "typescript";
import { expect, it } from "vitest";

const ROOT = "http://page/src/";
const TEXTS = import.meta.glob<string>(["./**/*.{ts,tsx}", "../e2e/**/*.ts"], {
  query: "?raw",
  import: "default",
  eager: true,
});

/** The imports of each file, types too. */
function importsOf(texts: Record<string, string>): Map<string, string[]> {
  const files = new Map(Object.entries(texts).map(([path, text]) => [pathOf(path, ROOT), text]));
  const imports = ([file, text]: [string, string]): [string, string[]] => [
    file,
    preProcessFile(text)
      .importedFiles.map(({ fileName }) => pathOf(fileName, new URL(file, ROOT).href))
      .flatMap((path) => [`${path}.ts`, `${path}.tsx`].filter((name) => files.has(name))),
  ];
  return new Map([...files].map(imports));
}

/** Resolves a path relative to a file, to a path from the page's folder. */
function pathOf(path: string, from: string): string {
  return new URL(path, from).pathname;
}

/** A path of imports that ends where it begins, or `[]`. */
function circleOf(imports: Map<string, string[]>): string[] {
  const done = new Set<string>();
  const visit = (file: string, path: string[]): string[] => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return [];
    for (const next of imports.get(file) ?? []) {
      const circle = visit(next, [...path, file]);
      if (circle.length > 0) return circle;
    }
    done.add(file);
    return [];
  };
  for (const file of imports.keys()) {
    const circle = visit(file, []);
    if (circle.length > 0) return circle;
  }
  return [];
}

it("has no circle of imports", () => {
  const imports = importsOf(TEXTS);
  expect([...imports.values()].flat().length).toBeGreaterThan(500);
  expect(circleOf(imports)).toEqual([]);
});

it("finds a circle", () => {
  const imports = new Map([
    ["a", ["b"]],
    ["b", ["c"]],
    ["c", ["b"]],
  ]);
  expect(circleOf(imports)).toEqual(["b", "c", "b"]);
});
