//! The rows of CSV and Parquet: one for each slot that holds something, in the same columns.

use super::page::{Cell, Page, Series};

/// Columns beside those of tags.
pub(super) const COLUMNS: [&str; 8] = ["date", "metric", "n", "sum", "min", "max", "first", "last"];

/// The column of a tag.
pub(super) fn column_name(tag: &str) -> String {
    if COLUMNS.contains(&tag) { format!("tag_{tag}") } else { tag.to_owned() }
}

/// Hands out the cells within the page's range with the start of their slots.
pub(super) fn for_each_cell<'a>(
    page: &'a Page,
    mut visit: impl FnMut(&'a Series, &'a Cell, i64) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for series in &page.series {
        for document in &series.documents {
            for cell in &document.cells {
                let start = document.start + i64::from(cell.0) * page.width_ms;
                if start + page.width_ms > page.start && start < page.end {
                    visit(series, cell, start)?;
                }
            }
        }
    }
    Ok(())
}
