/** Comma-separated text that spreadsheets open without running formulas. */

/** A text field: quoted when necessary, and never a formula. */
export function textField(text: string): string {
  // Spreadsheets read a field that begins with one of these as a formula, even after blanks.
  const escaped = /^\s*[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]|^\s|\s$/.test(escaped) ? `"${escaped.replaceAll('"', '""')}"` : escaped;
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

/** The text of a table. Lines end as RFC 4180 requires; an empty slot is an empty field. */
export function csv({ head, times, columns }: Table): string {
  const lines = [head.map(textField).join(",")];
  times.forEach((time, i) => {
    lines.push([textField(time), ...columns.map((column) => numberField(column[i]))].join(","));
  });
  return lines.join("\r\n") + "\r\n";
}
