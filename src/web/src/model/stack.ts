/** Stacked sums of series, for areas. */

export type Values = (number | null | undefined)[];

/**
 * The upper edges of the areas: each adds the values of a series to the edge of the previous shown
 * series. A missing value adds nothing; where all values are missing there is no area.
 */
export function stackValues(series: readonly Values[], shown: readonly boolean[]): Values[] {
  const length = series[0]?.length ?? 0;
  const sums = new Array<number>(length).fill(0);
  const hasValue = new Array<boolean>(length).fill(false);
  series.forEach((values, k) => {
    if (!shown[k]) return;
    values.forEach((value, i) => {
      if (value !== null && value !== undefined) hasValue[i] = true;
    });
  });
  return series.map((values, k) =>
    values.map((value, i) => {
      if (!hasValue[i]) return null;
      if (shown[k]) sums[i] = (sums[i] ?? 0) + (value ?? 0);
      return sums[i] ?? 0;
    }),
  );
}

/** Indexes of points without neighbours, which a line would not show. */
export function isolatedPoints(values: Values): number[] {
  const indexes: number[] = [];
  let previousIndex: number | null = null;
  let isPreviousAlone = false;
  // `undefined` is a time of other series only: it does not interrupt a line.
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (value === undefined) continue;
    if (value === null) {
      if (previousIndex !== null && isPreviousAlone) indexes.push(previousIndex);
      previousIndex = null;
      continue;
    }
    isPreviousAlone = previousIndex === null;
    previousIndex = i;
  }
  if (previousIndex !== null && isPreviousAlone) indexes.push(previousIndex);
  return indexes;
}
