//! One document as stored, with its bytes, and the location of the cells of its slots.
//!
//! Must never know: HTTP, how documents are encoded.

use serde::Serialize;

use crate::{
    model::{Granularity, GranularityIndex, SeriesId, SeriesInfo, UnixMillis},
    policy::retention::dropped_at,
    query::{
        Budget, NestedDocument, QueryError, Selector, SeriesEntry, documents::nested::nest_stored,
        series::suggestion,
    },
    store::{
        DocumentState, PartitionInfo, SampleLocations, Slot, Store, StoredDocument, StoredPart,
    },
};

/// Maximum number of series to look up; two are enough to report that the selector is ambiguous.
const SERIES_MAX: usize = 2;
/// Approximate memory of an answer per byte of its document.
const BYTES_PER_BYTE: usize = 64;

/// A request for a stored document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDocumentRequest {
    /// The selector; it must match exactly one series.
    pub selector: Selector,
    /// The name of a granularity; the finest when `None`.
    pub granularity: Option<String>,
    /// A time in the document and in the slot of interest.
    pub time: UnixMillis,
}

/// A stored document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredDocumentAnswer {
    /// The series of the document.
    pub series: SeriesEntry,
    /// Name of the granularity.
    pub granularity: String,
    /// The location of the cells of the requested slot.
    pub state: CellLocation,
    /// The partition of the document, if it exists. All projects share it.
    pub partition: Option<StoredPartition>,
    /// The document, if it exists.
    pub document: Option<ShownDocument>,
    /// Cells of the document's slots in the head.
    pub head: Vec<StoredCell>,
    /// Cells of the document's slots in memory; they are durable in the journal.
    pub memory: Vec<StoredCell>,
}

/// The location of the cells of a slot; the newest location when there are several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CellLocation {
    /// The slot has no cells, and there is no document.
    None,
    /// The slot has no cells; the document was preallocated.
    Shell,
    /// The document is open. The slot's cells, if any, are in the document.
    Open,
    /// The document is sealed. The slot's cells, if any, are in the document.
    Sealed,
    /// The cells are in the head.
    Head,
    /// The cells are in memory, and durable in the journal.
    Memory,
}

/// A partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the types explain the fields")]
pub struct StoredPartition {
    /// The file's path, relative to the data directory.
    pub file: String,
    pub start: i64,
    pub end: i64,
    pub bytes: u64,
    /// The time from which retention removes the partition.
    pub dropped_at: i64,
}

/// A document.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the types explain the fields")]
pub struct ShownDocument {
    pub start: i64,
    pub end: i64,
    pub bytes_hex: String,
    /// The parts of the document that belong to no slot.
    pub header: Vec<ShownPart>,
    pub nested: NestedDocument,
    pub slots: Vec<ShownSlot>,
}

/// A slot of a document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShownSlot {
    /// The start of the slot.
    pub start: i64,
    /// Number of samples in the slot.
    pub n: u32,
    /// The offset of the first column. Other columns may be elsewhere.
    pub offset: usize,
    /// Total length of the columns in bytes.
    pub length: usize,
    /// The columns of the slot.
    pub columns: Vec<ShownPart>,
}

/// A part of a document's bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the types explain the fields")]
pub struct ShownPart {
    pub name: &'static str,
    pub offset: usize,
    pub length: usize,
    pub value: Option<f64>,
}

/// A cell that is not in a document.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "see Cell")]
pub struct StoredCell {
    pub start: i64,
    pub n: u32,
    pub sum: Option<f64>,
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub first: Option<f64>,
    pub last: Option<f64>,
}

/// Reads a stored document.
///
/// # Errors
/// When the selector does not match exactly one series, the granularity is unknown, or the store
/// cannot be read.
pub fn stored_document(
    store: &Store,
    budget: &Budget,
    request: &StoredDocumentRequest,
) -> Result<StoredDocumentAnswer, QueryError> {
    budget.check()?;
    let (id, info) = only_series(store, &request.selector)?;
    let index = granularity(store, request.granularity.as_deref())?;
    let granularity = store.granularity(index);
    let found = store.sample_locations(index, id, request.time)?;
    budget.reserve(
        found.document.as_ref().map_or(0, |document| document.bytes.len() * BYTES_PER_BYTE),
    )?;
    let entry = SeriesEntry::new(&info);
    let slot = granularity.slot_start(request.time);
    let state = location(&found, slot);
    let SampleLocations { range, span, partition, document, head, memory } = found;
    let document = document.map(|stored| {
        let mut stored_granularity = granularity.clone();
        stored_granularity.document = span;
        show(&entry, &stored_granularity, range, &stored)
    });
    Ok(StoredDocumentAnswer {
        series: entry,
        granularity: granularity.name.clone(),
        state,
        partition: partition.map(|info| StoredPartition::new(info, granularity)),
        document,
        head: head.iter().map(StoredCell::new).collect(),
        memory: memory.iter().map(StoredCell::new).collect(),
    })
}

/// Returns the matching series. Fails unless exactly one series matches.
fn only_series(store: &Store, selector: &Selector) -> Result<(SeriesId, SeriesInfo), QueryError> {
    let dictionary = store.dictionary();
    let ids = dictionary.select(&selector.matchers());
    let series = ids.iter().filter_map(|id| Some((*id, dictionary.info(*id)?)));
    let mut series: Vec<_> = series.take(SERIES_MAX).collect();
    drop(dictionary);
    match (series.pop(), series.is_empty()) {
        (Some(only), true) => Ok(only),
        (Some(_), false) => Err(QueryError::Invalid(format!(
            "{} series match: add tags until one series matches",
            ids.len()
        ))),
        (None, _) => {
            let note = suggestion::note(store, selector);
            Err(QueryError::Invalid(note.unwrap_or_else(|| "no series matches".to_owned())))
        }
    }
}

fn granularity(store: &Store, name: Option<&str>) -> Result<GranularityIndex, QueryError> {
    let Some(name) = name else { return Ok(GranularityIndex::FINEST) };
    let all = store.all_granularities();
    let found = all.iter().position(|granularity| granularity.name == name).map(GranularityIndex);
    found.ok_or_else(|| {
        let named = store.granularities().iter();
        let names: Vec<_> = named.map(|granularity| granularity.name.as_str()).collect();
        let names = names.join(", ");
        QueryError::Invalid(format!("resolution={name:?} is not a granularity; use one of {names}"))
    })
}

fn location(found: &SampleLocations, slot: UnixMillis) -> CellLocation {
    let has_slot = |cells: &[Slot]| cells.iter().any(|stored| stored.start == slot);
    if has_slot(&found.memory) {
        return CellLocation::Memory;
    }
    if has_slot(&found.head) {
        return CellLocation::Head;
    }
    match found.document.as_ref().map(|document| document.state) {
        None => CellLocation::None,
        Some(DocumentState::Shell) => CellLocation::Shell,
        Some(DocumentState::Open) => CellLocation::Open,
        Some(DocumentState::Sealed) => CellLocation::Sealed,
    }
}

fn show(
    entry: &SeriesEntry,
    granularity: &Granularity,
    range: std::ops::Range<UnixMillis>,
    stored: &StoredDocument,
) -> ShownDocument {
    let cells = stored.slots.iter().map(|slot| (slot.start, slot.cell));
    let nested = nest_stored(entry, granularity, range.start, cells);
    let bytes_hex = stored.bytes.iter().flat_map(|byte| {
        [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0'))
    });
    let slots = stored.slots.iter().map(|slot| ShownSlot {
        start: slot.start.0,
        n: slot.cell.n,
        offset: slot.parts.iter().map(|part| part.offset).min().unwrap_or(0),
        length: slot.parts.iter().map(|part| part.length).sum(),
        columns: slot.parts.iter().map(ShownPart::new).collect(),
    });
    ShownDocument {
        start: range.start.0,
        end: range.end.0,
        bytes_hex: bytes_hex.collect(),
        header: stored.header.iter().map(ShownPart::new).collect(),
        nested,
        slots: slots.collect(),
    }
}

impl StoredPartition {
    pub(crate) fn new(info: PartitionInfo, granularity: &Granularity) -> Self {
        let dropped_at = dropped_at(granularity, info.end).0;
        let PartitionInfo { id, end, file, bytes } = info;
        Self { file, start: id.start.0, end: end.0, bytes, dropped_at }
    }
}

impl ShownPart {
    fn new(part: &StoredPart) -> Self {
        let StoredPart { name, offset, length, value } = *part;
        Self { name, offset, length, value: value.filter(|value| value.is_finite()) }
    }
}

impl StoredCell {
    fn new(slot: &Slot) -> Self {
        let [sum, min, max, first, last] = slot.cell.finite_numbers();
        Self { start: slot.start.0, n: slot.cell.n, sum, min, max, first, last }
    }
}
