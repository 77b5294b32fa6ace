//! The rows of CSV and Parquet: one per non-empty slot, with the same columns.

use super::page::{Cell, Page, Series};

/// The columns other than tags.
pub(super) const COLUMNS: [&str; 8] = ["date", "metric", "n", "sum", "min", "max", "first", "last"];

/// Returns the column name of a tag.
pub(super) fn column_name(tag: &str) -> String {
    if COLUMNS.contains(&tag) { format!("tag_{tag}") } else { tag.to_owned() }
}

/// Calls `visit` for each cell within the page's range, with the start of its slot.
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
