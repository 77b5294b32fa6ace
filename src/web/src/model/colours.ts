/** Colours of series: ten for each theme, then the same ten with dashes. */

/** Colours on a light background, distinguishable with any colour blindness. */
export const LIGHT = [
  "#1b66b5",
  "#ef5700",
  "#14806a",
  "#5e2379",
  "#808900",
  "#0c8aa6",
  "#bb2649",
  "#5b6470",
  "#c8509b",
  "#586e1c",
] as const;

/** Colours on a dark background, in the same order. */
export const DARK = [
  "#69a6f2",
  "#fd9855",
  "#50c5a3",
  "#e3b8ff",
  "#f0c040",
  "#56cad8",
  "#ff7f92",
  "#aeb7c2",
  "#faa1d4",
  "#a9d561",
] as const;

const DASHES: readonly number[][] = [[], [6, 4], [2, 3], [10, 4, 2, 4]];

export interface Look {
  colour: string;
  dash: number[];
}

/** The look of an index in the palette: colours repeat with other dashes. */
export function lookOf(index: number, dark: boolean): Look {
  const palette = dark ? DARK : LIGHT;
  const colour = palette[index % palette.length] ?? palette[0];
  const dash = DASHES[Math.floor(index / palette.length) % DASHES.length] ?? [];
  return { colour, dash: [...dash] };
}

/** The look of a ghost line, which shows earlier values of a series: pale, and dotted. */
export function ghostLook({ colour }: Look): Look {
  return { colour: `${colour}a0`, dash: [2, 3] };
}

/** Gives each series an index in the palette, which other series do not change. */
export class PaletteIndexes {
  private readonly indexes = new Map<string, number>();

  /** The number of absent series whose index is remembered. */
  constructor(private readonly keysMax = 2000) {}

  /** The indexes of these series; a new series gets the lowest free one. */
  assign(keys: readonly string[]): number[] {
    if (this.indexes.size > this.keysMax) this.forgetAllBut(keys);
    const used = new Set(keys.map((key) => this.indexes.get(key)).filter((p) => p !== undefined));
    let next = 0;
    for (const key of keys) {
      if (this.indexes.has(key)) continue;
      while (used.has(next)) next++;
      used.add(next);
      this.indexes.set(key, next);
    }
    return keys.map((key) => this.indexes.get(key) ?? 0);
  }

  private forgetAllBut(keys: readonly string[]) {
    const present = new Set(keys);
    for (const key of [...this.indexes.keys()]) if (!present.has(key)) this.indexes.delete(key);
  }
}
