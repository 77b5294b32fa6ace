//! Pages of an export: the cells of several series, in order of series and time.
//!
//! Must never know: HTTP, or the output format.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use serde::{Serialize, Serializer, ser::SerializeTuple};

use crate::{
    model::{Cell, Granularity, Histogram, HistogramSlot, JsonHistogram, SeriesId, UnixMillis},
    query::{
        Budget, QueryError, QueryLimits, Resolution, Selector, SeriesEntry, SeriesToken,
        cells::coverage::coverage,
        documents::check_count,
        series::selector::SeriesPage,
        time::resolution::{AUTO_POINTS, granularity_of_documents},
    },
    store::{Columns, Slot, Store, View},
};

/// Target number of slots on a page. A single series may have more slots.
const PAGE_SLOTS: i64 = 100_000;
/// Memory of a cell on a page, including the reserve of its list.
const CELL_BYTES: usize = 2 * size_of::<NumberedCell>();
/// Bytes of histograms after which a page ends. A single series may have more.
const PAGE_HISTOGRAM_BYTES: usize = 4 << 20;
/// Memory of a histogram on a page and of its text, for each byte of the histogram in memory.
const HISTOGRAM_FACTOR: usize = 3;

/// A request for a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportRequest {
    /// The series to export.
    pub selector: Selector,
    /// The granularity of the documents.
    pub resolution: Resolution,
    /// The time range; documents that overlap it are exported whole.
    pub range: Range<UnixMillis>,
    /// The last series of the previous page.
    pub after: Option<SeriesToken>,
    /// The newest series to include, so that all pages contain the same series.
    pub upto: Option<SeriesToken>,
    /// True to include preallocated documents without samples.
    pub shells: bool,
}

/// A page of an export.
#[derive(Debug, Serialize)]
pub struct ExportPage {
    /// Number of series on all pages.
    total: usize,
    /// Number of series up to the end of this page.
    done: usize,
    /// The parameter `after` of the next request; `None` on the last page.
    after: Option<SeriesToken>,
    /// The parameter `upto` of the next request.
    upto: Option<SeriesToken>,
    start: i64,
    end: i64,
    resolution: String,
    width_ms: i64,
    /// The name of the documents' timestamp field.
    timestamp: &'static str,
    /// The tag names of all series.
    tags: BTreeSet<String>,
    /// True when one of the series on all pages has histograms.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    has_histograms: bool,
    series: Vec<ExportSeries>,
}

#[derive(Debug, Serialize)]
struct ExportSeries {
    #[serde(flatten)]
    entry: SeriesEntry,
    documents: Vec<ExportDocument>,
}

#[derive(Debug, Serialize)]
struct ExportDocument {
    start: i64,
    slots: usize,
    cells: Vec<NumberedCell>,
    /// The histograms of the cells, for series of histograms.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    histograms: Vec<NumberedHistogram>,
}

/// The histograms of a slot, serialized as `[slot, first_at, last, first, total]`: the first one is
/// `null` if it is the last one, and so is the total if it equals the last one.
#[derive(Debug, Serialize)]
struct NumberedHistogram(usize, u32, JsonHistogram, Option<JsonHistogram>, Option<JsonHistogram>);

impl NumberedHistogram {
    fn new(index: usize, slot: HistogramSlot) -> Self {
        let HistogramSlot { cell, .. } = slot;
        let first = (cell.n > 1).then_some(JsonHistogram(cell.first));
        let total = (cell.total != cell.last).then(|| without_rounding(cell.total));
        Self(index, cell.first_at, JsonHistogram(cell.last), first, total)
    }
}

/// Returns a total whose counts are not negative. Increases and corrections of fractional counts
/// can leave a negative rest of their rounding, which readers of histograms refuse.
fn without_rounding(mut total: Histogram) -> JsonHistogram {
    let buckets = total.positive.iter_mut().chain(&mut total.negative);
    let counts = buckets.map(|bucket| &mut bucket.count);
    for count in counts.chain([&mut total.zero_count, &mut total.count]) {
        *count = count.max(0.0);
    }
    JsonHistogram(total)
}

/// A cell, serialized as `[slot, n, last_at, sum, min, max, first, last]`; NaN and infinity are
/// text.
#[derive(Debug)]
struct NumberedCell(usize, Cell);

impl Serialize for NumberedCell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(slot, cell) = self;
        let mut tuple = serializer.serialize_tuple(8)?;
        tuple.serialize_element(slot)?;
        tuple.serialize_element(&cell.n)?;
        tuple.serialize_element(&cell.last_at)?;
        let [min, max] = match (cell.min, cell.max) {
            // A counter's only reading in a slot has no rate.
            (f64::INFINITY, f64::NEG_INFINITY) => [None; 2],
            (min, max) => [Some(min), Some(max)],
        };
        for number in [Some(cell.sum), min, max, Some(cell.first), Some(cell.last)] {
            match number.filter(|number| !number.is_finite()) {
                Some(other) => tuple.serialize_element(&other.to_string())?,
                None => tuple.serialize_element(&number)?,
            }
        }
        tuple.end()
    }
}

/// Reads a page.
///
/// # Errors
/// When the resolution is unknown, a single series is too large, the budget is used up, or the
/// store cannot be read.
pub fn export(
    store: &Store,
    budget: &Budget,
    request: &ExportRequest,
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<ExportPage, QueryError> {
    // Automatic resolution ignores granularities that no longer receive samples, because they
    // contain too little of the range.
    let covered_range =
        if request.resolution == Resolution::Auto { &(now..now) } else { &request.range };
    let coverage = coverage(store, &[], covered_range, now);
    let index =
        granularity_of_documents(&coverage, &request.resolution, &request.range, AUTO_POINTS)?;
    let granularity = &coverage.granularities()[index];
    let first = granularity.document_start(request.range.start);
    let last = granularity.document_start(UnixMillis(request.range.end.0 - 1));
    let range = first..granularity.document.next(last);
    let slots = (range.end.0 - range.start.0) / granularity.width_ms;
    check_count(slots, 1, limits)?;
    let per_page = PAGE_SLOTS.min(limits.points_max as i64) / slots.max(1);
    let count = (per_page.max(1) as usize).min(limits.lines_max.max(1));
    let (mut tags, mut has_histograms) = (BTreeSet::new(), false);
    let tokens = (request.after.as_ref(), request.upto.as_ref());
    let found = request.selector.page(store, budget, tokens, count, |info| {
        has_histograms |= info.kind.is_histogram();
        for (name, _) in info.key.tags() {
            if !tags.contains(name) {
                tags.insert(name.to_owned());
            }
        }
    })?;
    let SeriesPage { total, before, upto, series: page } = found;
    let ids: Vec<_> = page.iter().map(|(id, _)| *id).collect();
    let view = store.view(coverage.stored(index), range, &ids)?;
    let mut series = Vec::with_capacity(page.len());
    let (mut filled, mut histogram_bytes) = (Vec::new(), 0);
    for (id, info) in &page {
        if histogram_bytes > PAGE_HISTOGRAM_BYTES {
            break;
        }
        budget.check()?;
        view.slots_into(*id, Columns::VALUES, &mut filled)?;
        budget.reserve(SeriesEntry::bytes_of(info) + filled.len() * CELL_BYTES)?;
        let shells = if request.shells { view.shells(*id, &filled)? } else { Vec::new() };
        budget.reserve(shells.len() * size_of::<ExportDocument>())?;
        let mut documents = to_documents(granularity, &filled, &shells);
        if info.kind.is_histogram() {
            histogram_bytes += add_histograms(granularity, (&view, *id), &mut documents, budget)?;
        }
        series.push(ExportSeries { entry: SeriesEntry::new(info), documents });
    }
    let done = before + series.len();
    let last = series.len().checked_sub(1).and_then(|last| page.get(last));
    Ok(ExportPage {
        total,
        done,
        after: last.filter(|_| done < total).map(|(_, info)| SeriesToken::new(&info.key)),
        upto,
        start: request.range.start.0,
        end: request.range.end.0,
        resolution: granularity.name.clone(),
        width_ms: granularity.width_ms,
        timestamp: granularity.document.timestamp_name(),
        tags,
        has_histograms,
        series,
    })
}

/// Adds the histograms of a series to its documents; returns their bytes.
fn add_histograms(
    granularity: &Granularity,
    (view, id): (&View, SeriesId),
    documents: &mut [ExportDocument],
    budget: &Budget,
) -> Result<usize, QueryError> {
    let mut read = 0;
    let slots = view.histogram_slots(id, &mut |bytes| {
        read += bytes;
        budget.reserve(HISTOGRAM_FACTOR * bytes).map_err(QueryError::from)
    })?;
    for slot in slots {
        let start = granularity.document_start(slot.start);
        let found = documents.binary_search_by_key(&start.0, |document| document.start);
        // Every slot with histograms has a cell.
        let Some(document) = found.ok().and_then(|index| documents.get_mut(index)) else {
            continue;
        };
        let index = granularity.slot_index(start, slot.start);
        document.histograms.push(NumberedHistogram::new(index, slot));
    }
    Ok(read)
}

fn to_documents(
    granularity: &Granularity,
    filled: &[Slot],
    shells: &[Range<UnixMillis>],
) -> Vec<ExportDocument> {
    let empty = |start: UnixMillis| ExportDocument {
        start: start.0,
        slots: granularity.slots(start),
        cells: Vec::new(),
        histograms: Vec::new(),
    };
    let starts = shells.iter().map(|span| granularity.document_start(span.start));
    let mut documents: BTreeMap<i64, ExportDocument> =
        starts.map(|start| (start.0, empty(start))).collect();
    for slot in filled.iter().filter(|slot| !slot.cell.is_empty()) {
        let start = granularity.document_start(slot.start);
        let document = documents.entry(start.0).or_insert_with(|| empty(start));
        let index = granularity.slot_index(start, slot.start);
        document.cells.push(NumberedCell(index, slot.cell));
    }
    documents.into_values().collect()
}
