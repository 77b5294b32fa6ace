//! Documents in the nested form that MMS made familiar, as the levels of a month, and unfolded
//! into rows.

use std::{collections::BTreeMap, ops::Range};

use serde::{Deserialize, Serialize};

use super::{
    Display, LevelsDocument, QueryError, QueryLimits, Resolution, Selector, SeriesEntry, coverage,
    levels::{Ladder, levels_document},
    resolution::level_of_documents,
};
use crate::{
    model::{Cell, Granularity, SeriesId, Span, UnixMillis},
    store::{SeriesInfo, Slot, Store},
};

const DAY_MS: i64 = 86_400_000;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentsRequest {
    /// Which series.
    pub selector: Selector,
    /// Granularity of the documents.
    pub resolution: Resolution,
    /// Documents that overlap this range are given whole.
    pub range: Range<UnixMillis>,
    /// What they look like.
    pub form: DocumentsForm,
    /// Which number an unfolded row shows; by kind when `None`.
    pub display: Option<Display>,
}

/// What documents look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DocumentsForm {
    /// As they are stored: the slots by number.
    #[default]
    Nested,
    /// A month each: days > hours > minutes.
    Levels,
    /// A row of date and value for each slot.
    Rows,
}

/// The answer: documents, or rows when they are unfolded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DocumentsAnswer {
    /// In order of series and time.
    Documents {
        /// See [`NestedDocument`].
        documents: Vec<NestedDocument>,
    },
    /// In order of series and time.
    Levels {
        /// See [`LevelsDocument`].
        documents: Vec<LevelsDocument>,
    },
    /// In order of time, then series; slots without samples give no row.
    Rows {
        /// See [`Row`].
        rows: Vec<Row>,
    },
}

/// A document, nested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NestedDocument {
    /// Which series.
    #[serde(flatten)]
    pub series: SeriesEntry,
    /// Start of the document, RFC 3339, under a name that tells its span: `timestamp_hour`,
    /// `timestamp_day`, `timestamp_month`, or `timestamp` for other spans.
    #[serde(flatten)]
    pub timestamp: BTreeMap<String, String>,
    /// Width of each slot.
    pub resolution: String,
    /// Samples in the document.
    pub num_samples: u64,
    /// Sum over the document: of a counter, its increase.
    pub total_samples: f64,
    /// By slot number: every slot is there, an empty one has `n` 0.
    pub values: BTreeMap<u32, SlotValue>,
}

/// The cell of a slot.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SlotValue {
    /// Number of samples.
    pub n: u32,
    /// Sum; see [`Cell`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum: Option<f64>,
    /// Smallest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Largest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// First in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<f64>,
    /// Last in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<f64>,
}

impl SlotValue {
    fn new(cell: &Cell) -> Self {
        let finite = |number: f64| (number.is_finite() && !cell.is_empty()).then_some(number);
        Self {
            n: cell.n,
            sum: finite(cell.sum),
            min: finite(cell.min),
            max: finite(cell.max),
            first: finite(cell.first),
            last: finite(cell.last),
        }
    }
}

/// A slot as a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Start of the slot, RFC 3339.
    pub date: String,
    /// The number that is shown.
    pub value: Option<f64>,
    /// What is measured.
    pub metric: String,
    /// Where.
    pub tags: BTreeMap<String, String>,
}

/// Answers a request for documents.
///
/// # Errors
/// When the resolution is not known, the answer too large, or the store cannot be read.
pub fn documents(
    store: &Store,
    request: &DocumentsRequest,
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<DocumentsAnswer, QueryError> {
    let found = request.selector.select_within(store, limits, false)?;
    if request.form == DocumentsForm::Levels {
        return levels(store, request, &found, limits, now);
    }
    let level = level_of_documents(&coverage(store, now), &request.resolution, &request.range)?;
    let granularity = &store.granularities().levels()[level];
    let start = granularity.document_start(request.range.start);
    let mut starts = vec![start];
    while let Some(last) = starts.last().copied() {
        let next = granularity.document.next(last);
        if next >= request.range.end || starts.len() > limits.points_max {
            break;
        }
        starts.push(next);
    }
    let end = starts.last().map_or(start, |last| granularity.document.next(*last));
    check_count((end.0 - start.0) / granularity.width_ms, found.len(), limits)?;
    let ids: Vec<_> = found.iter().map(|(id, _)| *id).collect();
    let view = store.view(level, start..end, &ids)?;
    let mut documents = Vec::new();
    let mut rows = Vec::new();
    for (id, info) in &found {
        let entry = SeriesEntry::new(info);
        let filled = view.slots(*id)?;
        if request.form == DocumentsForm::Rows {
            let display = request.display.unwrap_or_else(|| Display::of_kind(info.kind));
            let in_range = filled.iter().filter(|slot| {
                slot.start.plus(granularity.width_ms) > request.range.start
                    && slot.start < request.range.end
            });
            rows.extend(in_range.map(|slot| (slot.start, row(slot, &entry, display, granularity))));
            continue;
        }
        let nested = starts.iter().map(|start| nest(&entry, granularity, *start, &filled));
        documents.extend(nested.filter(|document| document.num_samples > 0));
    }
    if request.form == DocumentsForm::Nested {
        return Ok(DocumentsAnswer::Documents { documents });
    }
    rows.sort_by_key(|(start, _)| *start);
    Ok(DocumentsAnswer::Rows { rows: rows.into_iter().map(|(_, row)| row).collect() })
}

pub(super) fn check_count(
    slots: i64,
    series: usize,
    limits: &QueryLimits,
) -> Result<(), QueryError> {
    let slots = slots.saturating_mul(series.max(1) as i64);
    if slots > limits.points_max as i64 {
        return Err(QueryError::TooMuch(format!(
            "{slots} slots are more than {}: ask for a shorter range or fewer series, or raise \
             limits.query_points_max",
            limits.points_max
        )));
    }
    Ok(())
}

fn levels(
    store: &Store,
    request: &DocumentsRequest,
    found: &[(SeriesId, SeriesInfo)],
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<DocumentsAnswer, QueryError> {
    if request.resolution != Resolution::Auto {
        let message = "form=levels has every level that is kept; leave resolution out";
        return Err(QueryError::Invalid(message.to_owned()));
    }
    // More days than points are refused before the months are listed.
    check_count((request.range.end.0 - request.range.start.0) / DAY_MS, found.len(), limits)?;
    let everything = UnixMillis::MIN..UnixMillis::MAX;
    let ladder = Ladder::new(&coverage(store, now), &request.range, &everything, 3);
    check_count(ladder.parts(), found.len(), limits)?;
    let ids: Vec<_> = found.iter().map(|(id, _)| *id).collect();
    let open = ladder.open(store, &ids)?;
    let mut documents = Vec::new();
    for (id, info) in found {
        let entry = SeriesEntry::new(info);
        let parts = open.read(*id)?;
        let months = open.ladder.months();
        documents.extend(months.filter_map(|month| levels_document(&entry, month, &parts)));
    }
    Ok(DocumentsAnswer::Levels { documents })
}

fn row(slot: &Slot, entry: &SeriesEntry, display: Display, granularity: &Granularity) -> Row {
    Row {
        date: slot.start.to_string(),
        value: display.of_cell(&slot.cell, granularity.width_ms),
        metric: entry.metric.clone(),
        tags: entry.tags.clone(),
    }
}

fn nest(
    entry: &SeriesEntry,
    granularity: &Granularity,
    start: UnixMillis,
    filled: &[Slot],
) -> NestedDocument {
    let end = granularity.document.next(start);
    let mut values: BTreeMap<u32, SlotValue> =
        (0..granularity.slots(start) as u32).map(|slot| (slot, SlotValue::default())).collect();
    let (mut num_samples, mut total_samples) = (0, 0.0);
    for slot in filled.iter().filter(|slot| slot.start >= start && slot.start < end) {
        num_samples += u64::from(slot.cell.n);
        total_samples += slot.cell.sum;
        let index = granularity.slot_index(start, slot.start) as u32;
        values.insert(index, SlotValue::new(&slot.cell));
    }
    NestedDocument {
        series: entry.clone(),
        timestamp: BTreeMap::from([(timestamp_name(granularity).to_owned(), start.to_string())]),
        resolution: granularity.name.clone(),
        num_samples,
        total_samples,
        values,
    }
}

pub(super) fn timestamp_name(granularity: &Granularity) -> &'static str {
    match granularity.document {
        Span::Fixed(60_000) => "timestamp_minute",
        Span::Fixed(3_600_000) => "timestamp_hour",
        Span::Fixed(86_400_000) => "timestamp_day",
        Span::Months(1) => "timestamp_month",
        Span::Fixed(_) | Span::Months(_) => "timestamp",
    }
}
