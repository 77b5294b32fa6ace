//! The rows of CSV and Parquet: one per non-empty slot, with the same columns.

use super::page::{Cell, Document, Page, Series};
use crate::model::JsonHistogram;

/// The columns other than tags.
pub(super) const COLUMNS: [&str; 8] = ["date", "metric", "n", "sum", "min", "max", "first", "last"];

/// The column with the total of histograms, in exports of series of histograms.
pub(super) const HISTOGRAM: &str = "histogram";

/// Returns the column name of a tag.
pub(super) fn column_name(page: &Page, tag: &str) -> String {
    let is_taken = COLUMNS.contains(&tag) || page.has_histograms && tag == HISTOGRAM;
    if is_taken { format!("tag_{tag}") } else { tag.to_owned() }
}

/// Returns true when a slot of the page is within the page's range.
pub(super) fn is_in_range(page: &Page, start: i64) -> bool {
    start + page.width_ms > page.start && start < page.end
}

/// Returns the total of the histograms of a cell as JSON; `None` for a cell of numbers.
pub(super) fn histogram_text(document: &Document, cell: &Cell) -> anyhow::Result<Option<String>> {
    let found = document.histograms_of(cell);
    let total = found.map(|found| JsonHistogram(found.total().clone()));
    Ok(total.map(|total| serde_json::to_string(&total)).transpose()?)
}

/// A cell with its series, its document and the start of its slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) series: &'a Series,
    pub(super) document: &'a Document,
    pub(super) cell: &'a Cell,
    pub(super) start: i64,
}

/// Calls `visit` for each cell within the page's range.
pub(super) fn for_each_cell<'a>(
    page: &'a Page,
    mut visit: impl FnMut(Row<'a>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for series in &page.series {
        for document in &series.documents {
            for cell in &document.cells {
                let start = document.start + i64::from(cell.0) * page.width_ms;
                if is_in_range(page, start) {
                    visit(Row { series, document, cell, start })?;
                }
            }
        }
    }
    Ok(())
}
