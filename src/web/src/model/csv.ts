/** Tables as comma-separated text that spreadsheets open without running anything. */

/** A field of text: quoted where it must be, and never a formula. */
export function textField(text: string): string {
  // What begins with one of these is a formula to a spreadsheet, also after blanks.
  const safe = /^\s*[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function numberField(value: number | null | undefined): string {
  return value === null || value === undefined ? "" : String(value);
}

export interface Table {
  /** Name of each column; the first is the time. */
  head: readonly string[];
  times: readonly string[];
  columns: readonly (readonly (number | null | undefined)[])[];
}

/** Lines end as RFC 4180 wants; an empty field is a slot without a number. */
export function csv({ head, times, columns }: Table): string {
  const lines = [head.map(textField).join(",")];
  times.forEach((time, i) => {
    lines.push([textField(time), ...columns.map((column) => numberField(column[i]))].join(","));
  });
  return lines.join("\r\n") + "\r\n";
}
