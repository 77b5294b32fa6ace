//! Documents in the nested form that MongoDB's MMS made popular: slots by number. An hour of
//! one-second slots is nested as minutes of seconds.
//!
//! Must never know: the store, HTTP.

pub(super) mod plan;

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    ops::Range,
};

use jiff::tz::TimeZone;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::model::{Cell, Granularity, Span, UnixMillis};
use crate::query::{Budget, CalendarUnit, QueryError, SeriesEntry, time::calendar::local_time};

/// Memory of a slot in a document. Nodes of a map that grows at its end are half full.
pub(crate) const SLOT_BYTES: usize = 2 * size_of::<(SlotNumber, SlotValue)>();
/// Number of slots between checks of the budget.
const SLOTS_AT_A_TIME: usize = 1024;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

/// A document in nested form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NestedDocument {
    /// The series; for merged series, the metric and tags that they share.
    #[serde(flatten)]
    pub series: SeriesEntry,
    /// The start of the document, RFC 3339, under a name that depends on the span:
    /// `timestamp_minute`, `timestamp_hour`, `timestamp_day`, `timestamp_month`, or `timestamp` for
    /// other spans.
    #[serde(flatten)]
    pub timestamp: BTreeMap<String, String>,
    /// The slot width.
    pub resolution: String,
    /// The number of merged series, when series are merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<usize>,
    /// Number of samples in the document.
    pub num_samples: u64,
    /// Sum over the document; for a counter, its increase.
    pub total_samples: f64,
    /// The totals of each minute, in an hour of seconds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub minutes: BTreeMap<SlotNumber, MinuteTotals>,
    /// The slots by number. Empty slots are included, with `n` 0.
    pub values: SlotValues,
}

/// The totals of a minute.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MinuteTotals {
    /// The start of the minute.
    pub timestamp_minute: String,
    /// Number of samples in the minute.
    pub num_samples: u64,
    /// Sum over the minute.
    pub total_samples: f64,
}

/// The number of a slot in its document, or of a minute in its hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotNumber(pub u32);

impl Serialize for SlotNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for SlotNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(D::Error::custom)
    }
}

/// The slots of a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SlotValues {
    /// Slots by number.
    Slots(BTreeMap<SlotNumber, SlotValue>),
    /// Slots by minute and by number within the minute.
    Minutes(BTreeMap<SlotNumber, BTreeMap<SlotNumber, SlotValue>>),
}

impl SlotValues {
    /// Returns all slots.
    pub fn all(&self) -> Vec<&SlotValue> {
        match self {
            Self::Slots(slots) => slots.values().collect(),
            Self::Minutes(minutes) => minutes.values().flat_map(BTreeMap::values).collect(),
        }
    }
}

/// The cell of a slot.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SlotValue {
    /// Number of samples.
    pub n: u32,
    /// Sum of the values; see [`Cell`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<f64>,
    /// Smallest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Largest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// First value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<f64>,
    /// Last value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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

/// The division of time into the documents of a granularity.
#[derive(Debug, Clone)]
pub(crate) struct Nesting {
    granularity: Granularity,
    document: Span,
    zone: TimeZone,
    /// The calendar unit of a document in a zone other than UTC.
    unit: Option<CalendarUnit>,
}

impl Nesting {
    /// Creates the nesting of a granularity: stored documents in UTC, the local calendar in other
    /// zones. For long ranges, documents of a minute are combined into hours.
    pub(crate) fn new(granularity: &Granularity, zone: Option<&TimeZone>, range_ms: i64) -> Self {
        let zone = zone.cloned().unwrap_or(TimeZone::UTC);
        let combines_minutes =
            granularity.document == Span::Fixed(MINUTE_MS) && range_ms >= HOUR_MS;
        let document = if combines_minutes { Span::Fixed(HOUR_MS) } else { granularity.document };
        let unit = match document {
            Span::Fixed(HOUR_MS) => Some(CalendarUnit::Hour),
            Span::Fixed(DAY_MS) => Some(CalendarUnit::Day),
            Span::Months(1) => Some(CalendarUnit::Month),
            Span::Months(3) => Some(CalendarUnit::Quarter),
            Span::Months(12) => Some(CalendarUnit::Year),
            Span::Fixed(_) | Span::Months(_) => None,
        };
        let unit = unit.filter(|_| zone != TimeZone::UTC);
        Self { granularity: granularity.clone(), document, zone, unit }
    }

    /// Returns the calendar unit of a slot in this zone; `None` when slots are as stored.
    pub(crate) fn local_slot(&self) -> Option<CalendarUnit> {
        let is_day = self.granularity.width_ms == DAY_MS;
        match (self.unit, self.granularity.width_ms) {
            (Some(_), HOUR_MS) => Some(CalendarUnit::Hour),
            (Some(_), _) if is_day => Some(CalendarUnit::Day),
            _ => None,
        }
    }

    /// Returns the start of the document that contains a time.
    fn start_of(&self, at: UnixMillis) -> UnixMillis {
        match self.unit {
            Some(unit) => unit.start_of(at, &self.zone),
            None => self.document.start_of(at),
        }
    }

    /// Extends a range to whole documents.
    pub(crate) fn whole_documents(&self, range: &Range<UnixMillis>) -> Range<UnixMillis> {
        let last = self.start_of(range.end.minus(1));
        let end = match self.unit {
            Some(unit) => unit.next(last, &self.zone),
            None => self.document.next(last),
        };
        self.start_of(range.start)..end
    }

    /// Returns the number of a slot in its document.
    fn slot_number(&self, start: UnixMillis, slot: UnixMillis) -> u32 {
        let days = || {
            let date = |at: UnixMillis| at.timestamp().to_zoned(self.zone.clone()).date();
            date(start).until(date(slot)).map_or(0, |span| span.get_days())
        };
        let number = match self.local_slot() {
            Some(CalendarUnit::Day) => i64::from(days()),
            _ => (slot.0 - start.0) / self.granularity.width_ms,
        };
        u32::try_from(number).unwrap_or(0)
    }

    fn combines_minutes(&self) -> bool {
        self.document != self.granularity.document
    }

    /// Returns an empty document that begins at a time.
    fn empty_document(
        &self,
        entry: &SeriesEntry,
        merged: Option<usize>,
        start: UnixMillis,
    ) -> NestedDocument {
        let name = self.document.timestamp_name().to_owned();
        NestedDocument {
            series: entry.clone(),
            timestamp: BTreeMap::from([(name, local_time(start, &self.zone))]),
            resolution: self.granularity.name.clone(),
            merged,
            num_samples: 0,
            total_samples: 0.0,
            minutes: BTreeMap::new(),
            values: if self.combines_minutes() {
                SlotValues::Minutes(BTreeMap::new())
            } else {
                SlotValues::Slots(BTreeMap::new())
            },
        }
    }

    fn add_cell(
        &self,
        document: &mut NestedDocument,
        start: UnixMillis,
        at: UnixMillis,
        cell: &Cell,
    ) {
        let n = u64::from(cell.n);
        document.num_samples += n;
        document.total_samples += cell.sum;
        match &mut document.values {
            SlotValues::Slots(slots) => {
                slots.insert(SlotNumber(self.slot_number(start, at)), SlotValue::new(cell));
            }
            SlotValues::Minutes(minutes) => {
                let minute = (at.0 - start.0) / MINUTE_MS;
                let minute_start = start.plus(minute * MINUTE_MS);
                let number = SlotNumber(u32::try_from(minute).unwrap_or(0));
                let slot = SlotNumber(self.slot_number(minute_start, at));
                minutes.entry(number).or_default().insert(slot, SlotValue::new(cell));
                let totals = document.minutes.entry(number).or_default();
                totals.timestamp_minute = local_time(minute_start, &self.zone);
                totals.num_samples += n;
                totals.total_samples += cell.sum;
            }
        }
    }
}

/// Builds the documents of one line from its slots, in ascending order: documents with samples,
/// and documents of the requested nesting in which a preallocated document begins.
/// `nesting_of_width` returns the nesting for a slot width.
///
/// # Errors
/// When the budget is used up.
pub(crate) fn nest<'n>(
    (entry, merged): (&SeriesEntry, Option<usize>),
    slots: impl Iterator<Item = ((i64, i64), Cell)>,
    nesting_of_width: impl Fn(i64) -> &'n Nesting,
    (requested, shells): (&Nesting, Vec<UnixMillis>),
    budget: &Budget,
) -> Result<Vec<NestedDocument>, QueryError> {
    let shells: BTreeSet<_> = shells.into_iter().map(|start| requested.start_of(start)).collect();
    let mut documents: BTreeMap<(UnixMillis, String), NestedDocument> = BTreeMap::new();
    for (index, ((at, width), cell)) in slots.enumerate() {
        if index.is_multiple_of(SLOTS_AT_A_TIME) {
            budget.check()?;
        }
        let nesting = nesting_of_width(width);
        let start = nesting.start_of(UnixMillis(at));
        let document = match documents.entry((start, nesting.granularity.name.clone())) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => free.insert(nesting.empty_document(entry, merged, start)),
        };
        nesting.add_cell(document, start, UnixMillis(at), &cell);
    }
    documents.retain(|(start, granularity), document| {
        let is_shell = *granularity == requested.granularity.name && shells.contains(start);
        document.num_samples > 0 || is_shell
    });
    Ok(documents.into_values().collect())
}

/// Builds one document as stored, including empty slots.
pub(crate) fn nest_stored(
    entry: &SeriesEntry,
    granularity: &Granularity,
    start: UnixMillis,
    slots: impl Iterator<Item = (UnixMillis, Cell)>,
) -> NestedDocument {
    let nesting = Nesting::new(granularity, None, 0);
    let mut document = nesting.empty_document(entry, None, start);
    slots.for_each(|(at, cell)| nesting.add_cell(&mut document, start, at, &cell));
    document
}
