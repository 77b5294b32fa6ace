import { describe, expect, it } from "vitest";
import { DARK, LIGHT, PaletteIndexes, lookOf } from "./colours";

function linearChannels(colour: string): [number, number, number] {
  const channelAt = (at: number) => {
    const share = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  return [channelAt(1), channelAt(3), channelAt(5)];
}

function luminance([r, g, b]: [number, number, number]): number {
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: string, b: string): number {
  const [x, y] = [luminance(linearChannels(a)), luminance(linearChannels(b))];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

type Matrix = [number, number, number][];
/** Viénot's and Brettel's simulations in linear light. */
const SIGHTS: Record<string, Matrix> = {
  full: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  "without red": [
    [0.1121, 0.8853, -0.0005],
    [0.1127, 0.8897, -0.0001],
    [0.0045, 0, 1.0019],
  ],
  "without green": [
    [0.292, 0.7054, -0.0003],
    [0.2934, 0.7089, 0],
    [-0.0208, 0.0213, 1.0021],
  ],
  "without blue": [
    [1.0173, 0.027, -0.0443],
    [-0.0064, 0.8564, 0.1576],
    [0.0546, 0.1832, 0.7625],
  ],
};

/** Oklab: its distances approximate perceived ones. */
function oklab([r, g, b]: [number, number, number]): [number, number, number] {
  const l = Math.cbrt(0.4122 * r + 0.5363 * g + 0.0514 * b);
  const m = Math.cbrt(0.2119 * r + 0.6807 * g + 0.1074 * b);
  const s = Math.cbrt(0.0883 * r + 0.2817 * g + 0.63 * b);
  return [
    0.2105 * l + 0.7936 * m - 0.0041 * s,
    1.978 * l - 2.4286 * m + 0.4506 * s,
    0.0259 * l + 0.7828 * m - 0.8087 * s,
  ];
}

function distance(a: string, b: string, sight: Matrix): number {
  const seenColour = (colour: string) => {
    const [red, green, blue] = linearChannels(colour);
    const mixChannels = ([x, y, z]: [number, number, number]) =>
      Math.max(x * red + y * green + z * blue, 0);
    return oklab(sight.map(mixChannels) as [number, number, number]);
  };
  const [x, y] = [seenColour(a), seenColour(b)];
  return Math.hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]);
}

describe("the palettes", () => {
  it.each([
    ["light", LIGHT, "#ffffff"],
    ["dark", DARK, "#191e17"],
  ])("of the %s theme stand out from their ground", (_, palette, ground) => {
    for (const colour of palette) expect(contrast(colour, ground)).toBeGreaterThan(3);
  });

  it.each(Object.keys(SIGHTS))(
    "begin with colours that are easy to distinguish with sight %s",
    (sight) => {
      for (const palette of [LIGHT, DARK]) {
        const first = palette.slice(0, 4);
        const pairs = first.flatMap((a, k) => first.slice(k + 1).map((b) => [a, b] as const));
        for (const [a, b] of pairs) {
          expect(distance(a, b, SIGHTS[sight] ?? []), `${a} ${b}`).toBeGreaterThan(0.08);
        }
      }
    },
  );

  it.each(Object.keys(SIGHTS))("have ten distinct colours with sight %s", (sight) => {
    for (const palette of [LIGHT, DARK]) {
      const pairs = palette.flatMap((a, k) => palette.slice(k + 1).map((b) => [a, b] as const));
      for (const [a, b] of pairs) {
        expect(distance(a, b, SIGHTS[sight] ?? []), `${a} ${b}`).toBeGreaterThan(0.03);
      }
    }
  });

  it("repeat with dashes", () => {
    expect(lookOf(10, false).colour).toBe(lookOf(0, false).colour);
    expect(lookOf(10, false).dash).not.toEqual(lookOf(0, false).dash);
  });
});

describe("indexes", () => {
  it("stay with their series when others appear or disappear", () => {
    const indexes = new PaletteIndexes();
    expect(indexes.assign(["a", "b", "c"])).toEqual([0, 1, 2]);
    expect(indexes.assign(["c", "x", "b"])).toEqual([2, 0, 1]);
    expect(indexes.assign(["b", "c"])).toEqual([1, 2]);
  });

  it("are distinct while there are enough", () => {
    const indexes = new PaletteIndexes();
    indexes.assign(["a", "b"]);
    const all = indexes.assign(Array.from({ length: 20 }, (_, k) => `s${k}`));
    expect(new Set(all).size).toBe(20);
  });

  it("of series that disappeared long ago are forgotten", () => {
    const indexes = new PaletteIndexes(10);
    for (let k = 0; k < 50; k++) indexes.assign([`s${k}`]);
    expect(indexes.assign(["new"])).toEqual([0]);
  });
});
