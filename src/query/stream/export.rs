//! Pages of an export: the cells of several series, in order of series and time.
//!
//! Must never know: HTTP, or the output format.

mod part;
mod shards;
mod wire;

pub use shards::export_of_question;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use serde::{Serialize, Serializer, ser::SerializeTuple};

use crate::{
    model::{Cell, Granularity, Histogram, HistogramSlot, JsonHistogram, UnixMillis},
    query::{
        Budget, QueryError, QueryLimits, Resolution, Selector, SeriesEntry, SeriesToken,
        series::selector::After,
    },
    store::{Slot, Store},
};
use part::{PartHead, PartMax, PartRequest, SeriesPart};

/// Memory of a cell on a page, including the reserve of its list.
const CELL_BYTES: usize = 2 * size_of::<NumberedCell>();

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

/// Reads a page of all shards.
///
/// # Errors
/// When the resolution is unknown, a single series is too large, the budget is used up, the store
/// cannot be read, or a shard does not answer.
pub fn export(
    store: &Store,
    budget: &Budget,
    request: &ExportRequest,
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<ExportPage, QueryError> {
    if budget.others().is_some() {
        return shards::export(store, budget, request, limits, now);
    }
    let part = PartRequest {
        selector: &request.selector,
        resolution: &request.resolution,
        range: request.range.clone(),
        after: request.after.as_ref().map(After::Token),
        upto: request.upto.as_ref(),
        shells: request.shells,
        max: PartMax::PAGE,
    };
    let (mut series, mut last) = (Vec::new(), None);
    let (head, granularity) =
        part.read((store, budget), limits, now, &mut |granularity, part| {
            last = Some(SeriesToken::new(&part.info.key));
            series.push(ExportSeries::new(granularity, part, budget)?);
            Ok(())
        })?;
    let done = head.before + series.len();
    let after = last.filter(|_| done < head.total);
    let upto = head.upto.clone();
    Ok(ExportPage::new(request, &granularity, head, (done, after, upto), series))
}

impl ExportPage {
    fn new(
        request: &ExportRequest,
        granularity: &Granularity,
        head: PartHead,
        (done, after, upto): (usize, Option<SeriesToken>, Option<SeriesToken>),
        series: Vec<ExportSeries>,
    ) -> Self {
        Self {
            total: head.total,
            done,
            after,
            upto,
            start: request.range.start.0,
            end: request.range.end.0,
            resolution: granularity.name.clone(),
            width_ms: granularity.width_ms,
            timestamp: granularity.document.timestamp_name(),
            tags: head.tags,
            has_histograms: head.has_histograms,
            series,
        }
    }
}

impl ExportSeries {
    /// Returns the documents of a series, and reserves their memory.
    fn new(
        granularity: &Granularity,
        part: SeriesPart<'_>,
        budget: &Budget,
    ) -> Result<Self, QueryError> {
        let SeriesPart { info, slots, shells, histograms } = part;
        budget.reserve(SeriesEntry::bytes_of(info) + slots.len() * CELL_BYTES)?;
        budget.reserve(shells.len() * size_of::<ExportDocument>())?;
        let mut documents = to_documents(granularity, slots, &shells);
        for slot in histograms {
            let start = granularity.document_start(slot.start);
            let found = documents.binary_search_by_key(&start.0, |document| document.start);
            // Every slot with histograms has a cell.
            let Some(document) = found.ok().and_then(|index| documents.get_mut(index)) else {
                continue;
            };
            let index = granularity.slot_index(start, slot.start);
            document.histograms.push(NumberedHistogram::new(index, slot));
        }
        Ok(Self { entry: SeriesEntry::new(info), documents })
    }
}

fn to_documents(
    granularity: &Granularity,
    filled: &[Slot],
    shells: &[UnixMillis],
) -> Vec<ExportDocument> {
    let empty = |start: UnixMillis| ExportDocument {
        start: start.0,
        slots: granularity.slots(start),
        cells: Vec::new(),
        histograms: Vec::new(),
    };
    let mut documents: BTreeMap<i64, ExportDocument> =
        shells.iter().map(|start| (start.0, empty(*start))).collect();
    for slot in filled.iter().filter(|slot| !slot.cell.is_empty()) {
        let start = granularity.document_start(slot.start);
        let document = documents.entry(start.0).or_insert_with(|| empty(start));
        let index = granularity.slot_index(start, slot.start);
        document.cells.push(NumberedCell(index, slot.cell));
    }
    documents.into_values().collect()
}
