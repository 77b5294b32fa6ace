//! Tables, series and numbers for people.

use std::collections::BTreeMap;

use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, presets::UTF8_BORDERS_ONLY,
};

use super::screen;
use crate::query::{SeriesAnswer, SeriesEntry};

/// The number of significant digits.
const DIGITS: i32 = 4;

/// Returns a table as wide as the screen; when space is short, names are wrapped before numbers.
pub(super) fn table(header: impl IntoIterator<Item = String>) -> Table {
    let header: Vec<_> = header.into_iter().collect();
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY).set_header(&header);
    if let Ok(columns) = u16::try_from(screen::columns()) {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
        for (column, head) in table.column_iter_mut().zip(&header) {
            if !matches!(&**head, "series" | "metric" | "tags" | "sender" | "host") {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
    }
    table
}

/// Formats a series as `metric{tag=value}`.
pub(super) fn name(series: &SeriesEntry) -> String {
    name_of(&series.metric, &series.tags)
}

/// Formats a metric and its tags as `metric{tag=value}`.
pub(super) fn name_of(metric: &str, tags: &BTreeMap<String, String>) -> String {
    let pairs = self::tags(tags);
    screen::text(metric) + &if pairs.is_empty() { pairs } else { format!("{{{pairs}}}") }
}

/// Formats tags as `tag=value`, separated by commas.
pub(super) fn tags(tags: &BTreeMap<String, String>) -> String {
    let tags: Vec<_> = tags.iter().map(|(tag, value)| format!("{tag}={value}")).collect();
    screen::text(&tags.join(","))
}

/// Returns a right-aligned cell.
pub(super) fn right(text: impl ToString) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// Returns a right-aligned cell with a number.
pub(super) fn number(value: Option<f64>) -> Cell {
    right(value.map_or_else(|| "-".to_owned(), short))
}

/// Formats a number with few digits and a suffix for thousands, millions and so on.
pub(super) fn short(value: f64) -> String {
    if !value.is_finite() {
        return match value {
            f64::INFINITY => "+Inf".to_owned(),
            f64::NEG_INFINITY => "-Inf".to_owned(),
            _ => "NaN".to_owned(),
        };
    }
    if value != 0.0 && !(1e-4..1e15).contains(&value.abs()) {
        return format!("{value:.3e}");
    }
    let (mut scaled, mut suffix) = (value, "");
    let mut larger = ["k", "M", "G", "T"].into_iter();
    let mut limit = 9999.5;
    while scaled.abs() >= limit {
        let Some(next) = larger.next() else { break };
        (scaled, suffix, limit) = (scaled / 1000.0, next, 999.95);
    }
    let whole = if scaled == 0.0 { 0 } else { scaled.abs().log10().floor() as i32 };
    let decimals = (DIGITS - 1 - whole).clamp(0, 7) as usize;
    let text = format!("{scaled:.decimals$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{suffix}")
}

/// Returns a table with a row per series.
pub(super) fn series(answer: &SeriesAnswer) -> String {
    let mut table = table(["series", "kind", "unit"].map(str::to_owned));
    for series in &answer.series {
        table.add_row([name(series), series.kind.to_string(), screen::text(&series.unit)]);
    }
    let notes = answer.notes.iter().map(|note| format!("\n{}", screen::text(note)));
    let notes: String = notes.collect();
    if answer.series.is_empty() {
        return format!("no series{notes}");
    }
    format!("{table}\n{} of {} series{notes}", answer.series.len(), answer.total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_significant_digits() {
        for (value, text) in [
            (0.0, "0"),
            (12.0, "12"),
            (0.123_456_78, "0.1235"),
            (1.0 / 3.0, "0.3333"),
            (98.765_432, "98.77"),
            (-1234.5678, "-1235"),
            (9999.0, "9999"),
            (9999.6, "10k"),
            (123_456.0, "123.5k"),
            (999_990.0, "1M"),
            (16_384_000.0, "16.38M"),
            (3.2e9, "3.2G"),
            (5e14, "500T"),
            (2.5e15, "2.500e15"),
            (0.000_012_345, "1.234e-5"),
            (0.000_5, "0.0005"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "+Inf"),
        ] {
            assert_eq!(short(value), text);
        }
    }
}
