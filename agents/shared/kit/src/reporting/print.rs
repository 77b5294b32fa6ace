//! Readings as a table for people.

use std::io::{self, Write};

use crate::{KnownReading, Reading, Readings};

/// Writes one line per reading, with aligned columns, and the problems.
pub(crate) fn print_table(out: &mut impl Write, readings: &Readings) -> io::Result<()> {
    let header = ["METRIC", "TAGS", "KIND", "UNIT"].map(str::to_owned);
    let rows: Vec<([String; 4], String)> = std::iter::once((header, "VALUE".to_owned()))
        .chain(readings.as_slice().iter().map(row))
        .chain(readings.known().iter().map(known_row))
        .collect();
    let mut widths = [0; 4];
    for (cells, _) in &rows {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for (cells, value) in &rows {
        for (width, cell) in widths.iter().zip(cells) {
            write!(out, "{cell:<width$}  ")?;
        }
        writeln!(out, "{value}")?;
    }
    for (object, cause) in readings.problems() {
        writeln!(out, "cannot read {object}: {cause}")?;
    }
    writeln!(out, "{} readings", readings.len())
}

fn row(reading: &Reading) -> ([String; 4], String) {
    let tags: Vec<String> = reading.tags.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let kind = reading.kind.to_string();
    ([reading.metric.to_string(), tags.join(" "), kind, reading.unit.to_string()], {
        format!("{}", reading.value)
    })
}

fn known_row(reading: &KnownReading) -> ([String; 4], String) {
    let definition = reading.series.define(&[]);
    let tags: Vec<String> = definition.tags.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let kind = definition.kind.to_string();
    ([definition.metric, tags.join(" "), kind, definition.unit], format!("{}", reading.value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_problems_are_named() {
        let mut readings = Readings::default();
        readings.gauge("load_1m", "", &[("host", "a")], 0.5);
        readings.counter("reads", "operations", &[("disk", "sda"), ("host", "a")], 7.0, None);
        readings.problem("/mnt", "stale");
        let mut out = Vec::new();
        print_table(&mut out, &readings).unwrap();
        let expected = "\
METRIC   TAGS             KIND     UNIT        VALUE
load_1m  host=a           gauge                0.5
reads    disk=sda host=a  counter  operations  7
cannot read /mnt: stale
2 readings
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
